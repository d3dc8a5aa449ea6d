"""Refusals of services, in one family. Pages show the message, the API also the code."""

from django.http import Http404

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)  # what stored values of a wrong shape lead to


class Refusal(Exception):
    """``code`` is the API's error code, ``status`` its HTTP status."""

    status = 409

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Conflict(Refusal):
    """The dialog's state does not allow it; nothing was changed."""


class Invalid(Refusal):
    status = 400

    def __init__(self, message: str) -> None:
        super().__init__("invalid", message)


class Forbidden(Refusal):
    """Something that one may see and not change."""

    status = 403

    def __init__(self, message: str) -> None:
        super().__init__("permission_required", message)


class NotFound(Refusal, Http404):
    """A page that meets it is Django's page for that."""

    status = 404

    def __init__(self, message: str = "There is no such thing, or it is not yours.") -> None:
        super().__init__("not_found", message)


class TooLarge(Refusal):
    status = 413

    def __init__(self, found_bytes: int, allowed_bytes: int) -> None:
        super().__init__(
            "message_too_large",
            f"The message has {found_bytes:,} bytes; at most {allowed_bytes:,} are accepted. Shorten or split it.",
        )


class TooLargeForModel(Refusal):
    status = 413

    def __init__(self, message: str) -> None:
        super().__init__("message_too_large", message)


class RateLimited(Refusal):
    status = 429

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__("rate_limited", message)
        self.retry_after_seconds = retry_after_seconds


class BudgetSpent(RateLimited):
    """What an API key may cost in a month is used up."""

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message, retry_after_seconds)
        self.code = "budget_exceeded"
