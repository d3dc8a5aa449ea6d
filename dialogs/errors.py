"""Refusals of services, in one family. Pages show the message, the API also the code."""

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404

UNREADABLE = (LookupError, TypeError, ValueError, AttributeError)  # raised over stored values of a wrong shape
# Also raised over a missing row, and over an impossible number.
DAMAGED = (*UNREADABLE, ObjectDoesNotExist, ArithmeticError)


class Refusal(Exception):
    """A refusal. ``code`` is the API's error code, and ``status`` its HTTP status."""

    status: int
    code: str

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Conflict(Refusal):
    """The dialog's state does not allow the action, and nothing was changed."""

    status = 409

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Invalid(Refusal):
    status, code = 400, "invalid"


class Forbidden(Refusal):
    """The person may see the thing, but not change it."""

    status, code = 403, "permission_required"


class NotFound(Refusal, Http404):
    """The thing does not exist for this person. On a page this becomes Django's page for missing addresses."""

    status, code = 404, "not_found"

    def __init__(self, message: str = "There is no such thing, or it is not yours.") -> None:
        super().__init__(message)


class TooLarge(Refusal):
    status, code = 413, "message_too_large"


class RateLimited(Refusal):
    status, code = 429, "rate_limited"

    def __init__(self, message: str, retry_after_seconds: int) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class BudgetSpent(RateLimited):
    """An API key's monthly budget is used up."""

    code = "budget_exceeded"
