"""What stands around every page: who looks, what waits for them, where they were last."""

from dataclasses import dataclass
from typing import Any

from django import template
from django.contrib.auth.models import User
from django.utils.functional import cached_property

from dialogs.accounts import login
from dialogs.actions import questions
from dialogs.models import Dialog, PersonSettings
from dialogs.pages import dialog_page
from dominds.web.build import BUILD

register = template.Library()


@dataclass
class Frame:
    user: User

    build = BUILD

    @cached_property
    def look(self) -> PersonSettings:
        return login.settings_of(self.user)

    @cached_property
    def waiting(self) -> int:
        """Open questions that this person may see."""
        return questions.open_questions(self.user).count()

    @cached_property
    def recent(self) -> list[tuple[Dialog, str]]:
        return [(dialog, dialog_page.STATES[dialog.state]) for dialog in dialog_page.recent_dialogs(self.user)]  # type: ignore[index]

    @cached_property
    def agents(self) -> list[Any]:
        return dialog_page.agents()


@register.simple_tag(takes_context=True)
def page_frame(context: template.Context) -> Frame | None:
    user = context.get("user")
    return Frame(user) if user is not None and user.is_authenticated else None
