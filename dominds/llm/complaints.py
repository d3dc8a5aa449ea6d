"""Complaints of providers: the words and codes in an HTTP error answer, or in an error inside a stream."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

from dominds.llm.json_text import NotJson, parse

MAX_MESSAGE_CHARS = 500
READ_CHARS = 4000  # the part of a refusal that is read, since some quote the whole request
FIELD_NAME = re.compile(r"[Ii]nvalid [`'\"]([\w.\[\]]+)[`'\"]|^([a-z_]+(?:[.\[]\w+\]?)+): ")
# Fields with words for people, the most informative first. Servers write them in upper or lower case, with or without
# underscores.
WORDS = (
    "message",
    "detail",
    "details",
    "msg",
    "statusmsg",
    "errordescription",
    "errormsg",
    "errmsg",
    "errormessage",
    "faultstring",
    "reason",
    "title",
    "error",
    "errors",
    "fault",
    "data",
    "result",
)
VAGUE = ("details", "reason", "title", "data", "result")  # those of WORDS that occur without an error as well
CODES = ("code", "type", "status", "__type", "error_code", "error_type")
DEEPEST = 6  # levels of nested objects that are searched for words
MOST_WORDS = 10  # entries of a list that are read
ASKED_WAIT = re.compile(
    r"\b(?:retry|try again|wait) (?:in |after |for )?(?:(?P<minutes>\d+)m)?(?P<number>\d+(?:\.\d+)?) ?(?P<unit>ms|s|m)",
    re.I,
)
SECRET = re.compile(r"\b(sk|key|pk|gsk|xai|AIza)[-_][\w*.-]{6,}|\bAIza[\w-]{10,}|(?<=Bearer )\S+", re.I)


@dataclass(frozen=True, slots=True)
class Complaint:
    """A provider's complaint, with its lower-case ``codes`` and ``param``, the field of the request that it names."""

    text: str
    codes: frozenset[str] = frozenset()
    status: int | None = None
    retry_after_seconds: float | None = None
    param: str = ""
    has_files: bool = False

    @property
    def field(self) -> str:
        """Return the field of the request that the complaint is about, as far as it names one."""
        found = FIELD_NAME.search(self.text[:READ_CHARS])
        return self.param or (next(filter(None, found.groups())) if found else "")


def complaint_of_response(
    status: int, headers: Mapping[str, str], body: bytes, *, has_files: bool = False
) -> Complaint:
    """Read the complaint of an HTTP error answer with any body."""
    wait = retry_after_seconds(headers)
    try:
        document = parse(body)
    except NotJson:
        text = text_of_page(body) or _phrase(status)
        return Complaint(text, status=status, retry_after_seconds=wait, has_files=has_files)
    complaint = complaint_of_payload(document)
    return replace(
        complaint,
        text=complaint.text or _phrase(status),
        status=status,
        has_files=has_files,
        retry_after_seconds=wait or complaint.retry_after_seconds,
    )


def complaint_of_payload(payload: Any) -> Complaint:
    """Read the complaint of an error object, from an HTTP body or from an event in the middle of a stream."""
    if isinstance(payload, list) and payload and isinstance(payload[0], Mapping):  # Google's compatible endpoint
        payload = payload[0]
    if not isinstance(payload, Mapping):
        return Complaint(words_in(payload))
    errors = payload.get("errors")
    first = errors[0] if isinstance(errors, list) and errors else errors
    inner = payload.get("error") or first or payload.get("response") or payload.get("base_resp") or payload
    if isinstance(inner, Mapping) and isinstance(inner.get("error"), Mapping | str):
        inner = inner["error"]
    if not isinstance(inner, Mapping):
        text = words_in(payload)
        return Complaint(text, _codes_of(payload), _status_of(payload), asked_wait(text))
    codes = _codes_of(inner) | (_codes_of(payload) - {"error"})
    text = words_in(inner, depth=0 if inner is payload else 1) or words_in(payload)
    beside = inner.get("metadata")
    if isinstance(beside, Mapping) and (raw := words_in(beside.get("raw"))):  # OpenRouter quotes the provider here
        text = f"{text}: {raw}"
    param = inner.get("param")
    return Complaint(
        text,
        codes,
        _status_of(inner) or _status_of(payload),
        asked_wait(text),
        param=param if isinstance(param, str) else "",
    )


def words_in(value: Any, depth: int = 0) -> str:
    """Return an error's words for people, wherever they stand: in an object, a list, or JSON inside a text."""
    if depth > DEEPEST:
        return ""
    match value:
        case str():
            inner = _parse_or_none(value) if value.startswith(("{", "[")) else None
            return (words_in(inner, depth + 1) if inner else "") or value.strip()
        case list():
            return "; ".join(filter(None, (words_in(each, depth + 1) for each in value[:MOST_WORDS])))
        case Mapping():
            plain = {str(name).lower().replace("_", ""): each for name, each in value.items()}
            words = next((words for name in WORDS if (words := words_in(plain.get(name), depth + 1))), "")
            if not words and depth:  # Django and Rails: lists of words by the field that they are about
                lists = [(name, each) for name, each in value.items() if isinstance(each, list)][:MOST_WORDS]
                return "; ".join(f"{name}: {about}" for name, each in lists if (about := words_in(each, depth + 1)))
            steps = loc if isinstance(loc := plain.get("loc"), list) else ()  # FastAPI: the path of the field
            where = ".".join(str(step) for step in steps if step != "body")
            return f"{where}: {words}" if where and words else words
    return ""


def _parse_or_none(text: str) -> Any:
    try:
        return parse(text)
    except NotJson:
        return None


def asked_wait(text: str) -> float | None:
    """Return the seconds that a refusal's words ask to wait before another try, or None."""
    found = ASKED_WAIT.search(text[:READ_CHARS])
    if found is None:
        return None
    seconds = float(found["number"]) * {"ms": 0.001, "s": 1, "m": 60}[found["unit"].lower()]
    return _sensible(seconds + 60 * int(found["minutes"] or 0))


def _codes_of(given: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(
        str(value).rpartition("#")[2].lower()
        for value in map(given.get, CODES)
        if isinstance(value, str | int) and not isinstance(value, bool)
    )


def _status_of(given: Mapping[str, Any]) -> int | None:
    for value in (given.get("code"), given.get("status"), given.get("status_code")):
        number = int(value) if isinstance(value, str) and value.isdecimal() and len(value) == 3 else value
        if isinstance(number, int) and 400 <= number < 600:
            return number
    return None


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Return the wait that a server asks for, by ``retry-after-ms``, in seconds or as a date; None for nonsense."""
    milliseconds, value = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        wait = float(milliseconds) / 1000 if milliseconds else float(value)
    except ValueError:
        wait = _seconds_until(value, headers.get("date", ""))
    return _sensible(wait)


def _sensible(wait: float) -> float | None:
    return wait if 0 < wait < 7 * 24 * 3600 else None


def _seconds_until(value: str, now: str) -> float:
    try:
        return (parsedate_to_datetime(value) - parsedate_to_datetime(now)).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def text_of_page(body: bytes) -> str:
    """Return the words of an HTML or plain error page: its title, if it has one."""
    text = body[:20_000].decode("utf-8", "replace")
    title = re.search(r"<title[^>]*>([^<]{1,200})</title>", text, re.I)
    return title.group(1) if title else re.sub(r"<[^>]{0,1000}>", " ", text)


def readable(text: str) -> str:
    """Return one line without control characters or keys, of at most ``MAX_MESSAGE_CHARS`` characters."""
    printable = "".join(char if char.isprintable() else " " for char in text[: 8 * MAX_MESSAGE_CHARS])
    line = SECRET.sub("[key]", " ".join(printable.split()))
    return line if len(line) <= MAX_MESSAGE_CHARS else line[: MAX_MESSAGE_CHARS - 1] + "…"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"
