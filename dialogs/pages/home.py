"""The page on which a dialog begins: a composer, with a choice of who is to answer."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from uuid import uuid4

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from dialogs.context import limits
from dialogs.models import Agent, Dialog
from dialogs.models.agents import texts_in
from dialogs.pages.dialog_page import agents
from dialogs.permissions import OPERATE, may
from dominds.db.prepared import Select
from dominds.llm.models.model import ModelInfo

SUGGESTIONS = (
    gettext_noop("Explain step by step how a vaccine works"),
    gettext_noop("Ask me five questions, and then plan my week"),
    gettext_noop("What can you do here, and what not?"),
)


@dataclass
class HomePage:
    """The page on which a dialog begins. ``chosen``, an agent's id, and ``model``, as ``provider/model``, come from the
    form or the address.
    """

    viewer: User
    chosen: str = ""
    model: str = ""
    text: str = ""
    sending_error: str = ""
    new_message_id: str = field(default_factory=lambda: str(uuid4()))

    is_new = True
    may_send = True

    @property
    def send_to(self) -> str:
        return reverse("create-dialog")

    @cached_property
    def agents(self) -> list[tuple[Agent, str]]:
        """Return the agents, each with the reason why it cannot be used now. The chosen one comes first, then the one
        used last, then the default.
        """
        newest = _newest_agent.first(self.viewer.pk)
        order = (self.chosen, newest)

        def rank(entry: tuple[Agent, str]) -> tuple[bool, bool, bool, bool]:
            agent, reason = entry
            return agent.pk != order[0], bool(reason), agent.pk != order[1], not agent.is_default

        return sorted(agents(), key=rank)

    @cached_property
    def agent(self) -> Agent | None:
        """Return the agent that is ticked."""
        return next((agent for agent, reason in self.agents if not reason), None)

    @property
    def missed(self) -> str:
        """Say why the agent that the address names does not answer; empty where it does, or none is named."""
        if not self.chosen or self.agent is None or self.agent.pk == self.chosen:
            return ""
        unknown = _("There is no agent “{name}” here.").format(name=self.chosen[:64])
        reason = next((reason for agent, reason in self.agents if agent.pk == self.chosen), unknown)
        return f"{reason} {_('{agent} answers instead.').format(agent=self.agent)}"

    @cached_property
    def models(self) -> list[tuple[str, list[ModelInfo]]]:
        """Return the models to choose from, by provider."""
        return choosable_models()

    @cached_property
    def offers_connection(self) -> bool:
        """Check whether to offer connecting a provider: the person may do so, and no agent has a real model."""
        return all(agent.is_demo for agent, _ in self.agents) and may(self.viewer, OPERATE)

    @property
    def suggestions(self) -> list[tuple[Agent, list[str]]]:
        """Return three suggestions for each agent."""
        usual = [_(text) for text in SUGGESTIONS]
        shown = [(agent, texts_in(agent.suggestions)[:3]) for agent, reason in self.agents if not reason]
        # The demo agents' suggestions are part of the product, and so they have translations.
        return [(agent, [_(text) for text in texts] if agent.is_demo else texts or usual) for agent, texts in shown]


@Select
def _newest_agent(user_id: int) -> QuerySet[Dialog, str]:
    return Dialog.objects.filter(owner=user_id).order_by("-active_at").values_list("agent", flat=True)[:1]


def choosable_models(script_of: str = "") -> list[tuple[str, list[ModelInfo]]]:
    """Return the models to choose from, by the names of their providers: those of servers with a key, and the scripts
    of the provider ``script_of``.
    """
    offered = limits.offered_models()
    return _by_provider(model for model in offered if model.kind.is_server or model.provider_id == script_of)


def models_for_agents() -> list[tuple[str, list[ModelInfo]]]:
    """Return the models for agents: those that people can choose, and then all scripts."""
    return _by_provider(sorted(limits.offered_models(), key=lambda model: not model.kind.is_server))


def _by_provider(models: Iterable[ModelInfo]) -> list[tuple[str, list[ModelInfo]]]:
    groups = groupby(models, key=lambda model: model.provider_id)
    return [(limits.catalog().providers[provider].name, list(group)) for provider, group in groups]
