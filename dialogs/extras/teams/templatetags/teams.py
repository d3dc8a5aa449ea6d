"""The team of a page's dialog."""

from django import template

from dialogs.extras.teams.team import Team, team_of
from dialogs.pages.dialog_page import DialogPage

register = template.Library()


@register.simple_tag
def team_of_page(page: DialogPage) -> Team | None:
    return team_of(page.dialog)
