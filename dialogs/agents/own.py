"""Agents that people make on the page. Agents of ``team.yaml`` are read from the file at each start, and never changed
here."""

from django.db import transaction

from dialogs.agents.connecting import free_id
from dialogs.agents.fields import FIELDS
from dialogs.errors import Conflict
from dialogs.models import Agent


def blank(provider: str = "", model: str = "") -> Agent:
    """Return a new agent with the values that the database would fill in, since a form shows them."""
    return Agent(provider=provider, model=model, description="", prepare_rewrites=True, proxy=False)


def copy_of(agent: Agent) -> Agent:
    """Return an unsaved copy with another name and no id."""
    return Agent(
        **{name: getattr(agent, name) for name in FIELDS} | {"name": f"{agent.name} 2"[:120], "extras": agent.extras}
    )


def save(agent: Agent) -> Agent:
    """Store an agent; a new one gets an id made of its name. Raises ``Conflict`` for an agent that the file describes.

    A new default agent replaces the one before.
    """
    with transaction.atomic():
        taken = set(Agent.objects.select_for_update().values_list("pk", flat=True))
        if agent.is_listed:
            raise Conflict("agent_in_file", f"The server's configuration names {agent}. Change it there, or copy it.")
        agent.pk = agent.pk or free_id(agent.name, taken)
        if agent.is_default:
            Agent.objects.filter(is_default=True).exclude(pk=agent.pk).update(is_default=False)
        agent.save()
    return agent


def switch(agent: Agent, *, on: bool) -> None:
    """Enable or disable an agent. An agent of the file also stays disabled at the next start."""
    agent.enabled = on
    agent.save(update_fields=["enabled"])
