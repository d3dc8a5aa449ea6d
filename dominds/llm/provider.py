"""The one protocol that every provider wrapper speaks, and the one error family that it raises."""

from collections.abc import Callable
from typing import ClassVar, Protocol

from dominds.llm.messages import Request
from dominds.llm.stream import StreamEvent


class Stream(Protocol):
    """One model call, which runs once."""

    def run(self, take: Callable[[StreamEvent], object]) -> None:
        """Make the call and hand each event to ``take`` as it comes: ``Started`` first and ``Finished`` last.

        Returns behind the last one, or raises ``ProviderError``. The thread that calls waits; ``take`` may run in
        another one, which it must not keep.
        """

    def abort(self) -> None:
        """Close the connection, from any thread, at any time, ``take`` included; ``run`` then raises ``StreamAborted``
        and nothing more is taken."""


class Provider(Protocol):
    def stream(self, request: Request) -> Stream:
        """Open one model call. Nothing is sent before it runs."""


class ProviderError(Exception):
    """What went wrong between us and a model, in words for the person who has to act.

    ``retry_after_seconds`` is the provider's own advice, when it gave one.
    """

    kind: ClassVar[str] = "provider_error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class AuthFailed(ProviderError):
    kind = "auth"


class RateLimited(ProviderError):
    kind = "rate_limit"
    retryable = True


class Overloaded(ProviderError):
    """The provider is busy or broken (5xx, 529, an error event that says so)."""

    kind = "overloaded"
    retryable = True


class ContextOverflow(ProviderError):
    """The provider says that the request is too long for the model (R12). Never retried as it is."""

    kind = "context_overflow"


class RequestRefused(ProviderError):
    """The provider understood the request and will not serve it: a bad field, an unknown model, a content rule."""

    kind = "refused"


class NetworkFailed(ProviderError):
    kind = "network"
    retryable = True


class MalformedStream(ProviderError):
    """The answer broke off without the provider's explicit end, or is not in the provider's format."""

    kind = "malformed_stream"
    retryable = True


class ProviderTimeout(ProviderError):
    kind = "timeout"
    retryable = True


class StreamAborted(ProviderError):
    """We closed the stream ourselves."""

    kind = "aborted"
