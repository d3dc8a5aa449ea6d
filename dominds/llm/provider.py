"""The one protocol that every provider wrapper speaks, and the one error family that it raises."""

from collections.abc import Callable
from copy import copy
from typing import ClassVar, Protocol, Self

from dominds.llm.messages import Request
from dominds.llm.stream import StreamEvent


class Stream(Protocol):
    """One model call, which runs once."""

    @property
    def body(self) -> bytes:
        """Return the JSON that is sent, byte for byte. A call that sends nothing returns its request as JSON."""

    def run(self, take: Callable[[StreamEvent], object]) -> None:
        """Make the call and wait for its end. Raises ``ProviderError``.

        Each event goes to ``take`` as it comes: ``Started`` first and ``Finished`` last. ``take`` may run in another
        thread, which it must not hold up.
        """

    def abort(self) -> None:
        """Close the connection. ``run`` then raises ``StreamAborted``, and no event follows.

        This may be called at any time, from any thread and from within ``take``.
        """


class Provider(Protocol):
    def stream(self, request: Request) -> Stream:
        """Open one model call. Nothing is sent before it runs."""


class ProviderError(Exception):
    """A failed call, explained for the person who has to act.

    ``retry_after_seconds`` is the provider's advice, or None, and ``status`` its HTTP status.
    """

    kind: ClassVar[str] = "provider_error"
    retryable: ClassVar[bool] = False
    status: int | None = None

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds

    def reword(self, message: str) -> Self:
        """Return the same error with another message."""
        again = copy(self)
        again.args = (message,)
        return again


class AuthFailed(ProviderError):
    """The provider does not know the key (401)."""

    kind = "auth"


class AccessDenied(AuthFailed):
    """The provider knows the key, which has no permission for this call (403)."""

    kind = "forbidden"


class RateLimited(ProviderError):
    kind = "rate_limit"
    retryable = True


class Overloaded(ProviderError):
    """The provider is busy or broken (5xx, 529, an error event that says so)."""

    kind = "overloaded"
    retryable = True


class ContextOverflow(ProviderError):
    """The provider says that the request is too long for the model. It is never retried unchanged.

    ``window``, ``prompt_tokens`` and ``output_tokens`` (the requested output) are None if the provider does not name
    them.
    """

    kind = "context_overflow"

    def __init__(
        self,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        window: int | None = None,
        prompt_tokens: int | None = None,
        output_tokens: int | None = None,
    ) -> None:
        super().__init__(message, retry_after_seconds=retry_after_seconds)
        self.window, self.prompt_tokens, self.output_tokens = window, prompt_tokens, output_tokens


class OutputBudgetTooLarge(ContextOverflow):
    """The prompt fits, but not with the requested output. A request for less output may succeed."""

    kind = "output_budget"

    @property
    def room(self) -> int | None:
        """Return the tokens of output that fit, by the provider's numbers; None if it does not name them."""
        return None if self.window is None or self.prompt_tokens is None else self.window - self.prompt_tokens


class TooLargeForRate(ProviderError):
    """The request alone exceeds a quota of tokens per minute. Waiting does not help, but a shorter request may."""

    kind = "too_large_for_rate"


class RequestRefused(ProviderError):
    """The provider understood the request and will not serve it: a bad field, an unknown model, a content rule."""

    kind = "refused"


class RefusedForGood(RequestRefused):
    """No request to this model, or from this account, can succeed until somebody acts.

    The model is unknown or retired, or the account is out of money.
    """

    kind = "refused_for_good"


class OutputAboveMaximum(RequestRefused):
    """The requested output is longer than the model's greatest, which is ``most`` tokens, or None if unknown."""

    kind = "output_above_maximum"

    def __init__(self, message: str, *, retry_after_seconds: float | None = None, most: int | None = None) -> None:
        super().__init__(message, retry_after_seconds=retry_after_seconds)
        self.most = most


class ForcingRefused(RequestRefused):
    """The model cannot be forced to call a tool. The same request without ``force`` may succeed."""

    kind = "forcing_refused"


class SystemRefused(RequestRefused):
    """The model takes no system message in the middle. The same request with user messages instead may succeed."""

    kind = "system_refused"


class ImagesRefused(RequestRefused):
    """The model sees no images. The same conversation with a line in place of each may succeed."""

    kind = "images_refused"


class StaleReasoning(RequestRefused):
    """The provider does not take earlier reasoning back, or misses it. The same request in a new epoch may succeed."""

    kind = "stale_reasoning"


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


class AnswerTooLarge(ProviderError):
    """The answer exceeded a bound of ``dominds.budgets`` and was cut off. Another try would probably exceed it, too."""

    kind = "too_large"


class Unreachable(ProviderTimeout):
    """The server accepted no connection for so long that a person is told at once, without another try."""

    kind = "unreachable"
    retryable = False


class StreamAborted(ProviderError):
    """The stream was closed from this side."""

    kind = "aborted"
