"""Language and time zone of a response: the person's choice, or else what their browser prefers."""

from zoneinfo import ZoneInfo

import structlog
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone, translation
from django.utils.cache import patch_vary_headers
from django.utils.decorators import sync_only_middleware

from dialogs.accounts.login import settings_of
from dialogs.models import PersonSettings
from dialogs.models.settings import zone_named
from dialogs.pages.language import known_language
from dominds.web import busy_database
from dominds.web.middleware import Handler

log = structlog.get_logger(__name__)

FOR_PROGRAMS = ("/api/", "/v1/", "/mcp", "/metrics")
PAGE_HEADER = "X-Page-Language"  # sent by htmx, so that a piece comes in the language of its page


@sync_only_middleware
def in_own_zone(get_response: Handler) -> Handler:
    """Show times and days on pages in the reader's time zone. Programs get UTC."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        if request.path_info.startswith(FOR_PROGRAMS):
            return get_response(request)
        with timezone.override(zone_of(request)):
            return get_response(request)

    return answer


@sync_only_middleware
def in_chosen_language(get_response: Handler) -> Handler:
    def answer(request: HttpRequest) -> HttpResponseBase:
        with translation.override(language_of(request)):
            response = get_response(request)
            shown_in = translation.get_language() or ""
        if response.get("Content-Type", "").startswith("text/html"):
            patch_vary_headers(response, ("Accept-Language",))
            if response.status_code == 200:  # a redirect shows nothing, and its cookie may hold the zone chosen before
                _remember(request, shown_in)
        return response

    return answer


def _remember(request: HttpRequest, language: str) -> None:
    """Store language and zone of the newest page, for mails and push notifications, which have no browser to ask. Only
    a change takes a statement. With a chosen language, the language of the page does not matter.
    """
    own: PersonSettings | None = getattr(request, "own_settings", None)
    if own is None:
        return
    follows = request.COOKIES.get("zone") and not own.zone  # beside a chosen zone, the cookie only repeats it
    zone = str(zone_of(request)) if follows else own.seen_zone
    is_same_language = bool(own.language) or language == (own.seen_language or known_language(""))
    if is_same_language and (zone or "UTC") == (own.seen_zone or "UTC"):
        return
    try:
        seen = {"seen_language": language, "seen_zone": zone}
        PersonSettings.objects.update_or_create(user_id=own.user_id, defaults=seen, create_defaults=seen)
    except busy_database.AWAY as error:  # the next page stores it
        log.info("language_not_noted", person=own.user_id, error=str(error) or type(error).__name__)


def zone_of(request: HttpRequest) -> ZoneInfo:
    """Return the chosen zone, else the browser's, which a script puts into a cookie, else the last one used."""
    own: PersonSettings | None = getattr(request, "own_settings", None)
    seen = request.COOKIES.get("zone", "")
    if own is not None and (own.zone or not seen):
        return own.zone_in_force
    return zone_named(seen)


def language_of(request: HttpRequest) -> str:
    if request.path_info.startswith(FOR_PROGRAMS):
        return known_language("")
    if PAGE_HEADER in request.headers:
        return known_language(request.headers[PAGE_HEADER].lower())
    if isinstance(request.user, User):
        request.own_settings = own = settings_of(request.user)  # type: ignore[attr-defined]
        if own.language:
            return known_language(own.language)
    return translation.get_language_from_request(request)
