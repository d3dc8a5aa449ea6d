"""The frame around every page: its reader, the number of questions that wait for them, and their newest dialogs."""

from dataclasses import dataclass

from django import template
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.functional import cached_property

from dialogs.accounts import login
from dialogs.actions import questions
from dialogs.models import Dialog, PersonSettings
from dialogs.pages import sidebar
from dominds.web.build import BUILD

register = template.Library()


@dataclass
class Frame:
    user: User
    request: HttpRequest

    build = BUILD

    @cached_property
    def appearance(self) -> PersonSettings:
        """Return the settings, as the middleware read them when it looked for the language."""
        return getattr(self.request, "own_settings", None) or login.settings_of(self.user)

    @cached_property
    def waiting(self) -> int:
        """Return the number of open questions that this person may see."""
        return questions.count_open(self.user)

    @cached_property
    def recent(self) -> list[Dialog]:
        return sidebar.recent_dialogs(self.user, sidebar.NEWEST)

    @cached_property
    def sections(self) -> list[sidebar.Section]:
        return sidebar.sections(self.user, self.recent)


@register.simple_tag
def build() -> str:
    return BUILD


@register.simple_tag(takes_context=True)
def page_frame(context: template.Context) -> Frame | None:
    user = context.get("user")
    if getattr(context.get("request"), "by_link", None):
        return None
    return Frame(user, context["request"]) if user is not None and user.is_authenticated else None
