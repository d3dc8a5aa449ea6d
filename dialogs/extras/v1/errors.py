"""Errors in OpenAI's shape."""

import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse, JsonResponse
from structlog.contextvars import get_contextvars

from dialogs.errors import RateLimited, Refusal

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
CODES = {"agent_unusable": "model_unusable", "rate_limited": "rate_limit_exceeded", "not_found": "dialog_not_found"}

UNPAID = (402, 429)  # OpenAI says 429 for a quota that is used up and comes back by no wait


def request_id() -> str:
    """Return the id of the request under way, as the log has it."""
    return str(get_contextvars().get("request_id", ""))


class ApiError(Exception):
    """An error as the client is told it. ``param`` names the field at fault. ``repeatable`` says that the same request
    may be sent again, and then stores nothing twice.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        retry_after_seconds: int | None = None,
        repeatable: bool = False,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.param = status, code, message, param
        self.retry_after_seconds, self.repeatable = retry_after_seconds, repeatable

    def rename_param(self, names: Mapping[str, str]) -> None:
        """Name the field as the client's protocol does. ``names`` has that name by the field's name in chat
        completions.
        """
        if self.param and (own := names.get(self.param)):
            self.message = re.sub(rf"^{re.escape(self.param)}\b", own, self.message)
            self.param = own

    @property
    def body(self) -> dict[str, Any]:
        kind = TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self, body: dict[str, Any]) -> HttpResponse:
        """Return the response. ``body`` writes the error in the words of the protocol that was spoken."""
        answer = JsonResponse(body, status=self.status)
        if self.retry_after_seconds is not None:
            answer["Retry-After"] = str(self.retry_after_seconds)
        if not self.repeatable:
            answer["x-should-retry"] = "false"  # the official clients would repeat 409 and 500, and so post twice
        return answer


class MovedOn(ApiError):
    """Raised where another request was faster, and went on where this one was about to: it is read again."""

    def __init__(self) -> None:
        super().__init__(409, "conversation_went_on", "The conversation went on meanwhile. Send the request again.")


def invalid(message: str, param: str | None = None) -> ApiError:
    return ApiError(400, "invalid", message, param=param)


def refused_by_provider(words: str, status: int | None) -> ApiError:
    """Return what the provider refused, with its own status where clients tell that from a wrong request."""
    code = "insufficient_quota" if status in UNPAID else "refused_by_provider"
    return ApiError(status if status in (*UNPAID, 404, 422) else 400, code, words)


def of_refusal(refusal: Refusal) -> ApiError:
    """Turn a refusal into an error. An agent that cannot answer is the client's wrong choice (400), no conflict."""
    status = 400 if refusal.code == "agent_unusable" else refusal.status
    wait = refusal.retry_after_seconds if isinstance(refusal, RateLimited) else None
    code, soon = CODES.get(refusal.code, refusal.code), refusal.code == "rate_limited"
    return ApiError(status, code, refusal.message, retry_after_seconds=wait, repeatable=soon)
