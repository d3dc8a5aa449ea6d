"""The part of an agent's page that names whom it may ask."""

from django import forms
from django.utils.translation import gettext_lazy as _

from dialogs.models import Agent


def agent_form(agent: Agent) -> dict[str, forms.Field]:
    """Return a choice of all other agents. One that is gone, or switched off, stays chosen until it is taken out."""
    others = Agent.objects.filter(enabled=True, proxy=False).exclude(pk=agent.pk).order_by("name", "pk")
    names = dict(others.values_list("pk", "name"))
    now = {name: name for name in agent.stated_extras.get("colleagues", ()) if isinstance(name, str)}
    field = forms.MultipleChoiceField(
        choices=list((now | names).items()),
        required=False,
        widget=forms.SelectMultiple({"size": 4}),
        label=_("Colleagues"),
        help_text=_("Agents that it may ask, each of which then works in a side dialog."),
    )
    return {"colleagues": field}
