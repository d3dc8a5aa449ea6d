"""Begins the answer to a request: by the agent that it names, in the dialog that it belongs to.

A history that fits no dialog, or continues an older place of one, becomes a dialog of its own.
"""

from collections.abc import Collection

from django.db.models import QuerySet

from dialogs.context.served import Served, served_or_unknown
from dialogs.errors import Conflict
from dialogs.extras.v1.errors import ApiError, invalid
from dialogs.extras.v1.history import conversation_of
from dialogs.extras.v1.matching.incoming import Incoming
from dialogs.extras.v1.parsing import ChatRequest
from dialogs.extras.v1.placing import places
from dialogs.extras.v1.posting import post
from dialogs.extras.v1.preparing import prepare
from dialogs.extras.v1.runs import Run
from dialogs.models import Agent, ApiKey
from dialogs.tools.registry import tools_under
from dominds.db.prepared import Select
from dominds.llm.catalog.catalog import UnknownModel


def begin(key: ApiKey, request: ChatRequest) -> Run:
    """Post what is new in the request to the dialog that it belongs to. Raises ``ApiError`` or ``Refusal``."""
    incoming = Incoming(key, *agent_of(request), request, conversation_of(request.messages))
    return next(run for place in places(incoming) if (run := post(place, prepare(place))))


def agent_of(request: ChatRequest) -> tuple[Agent, Served]:
    """Return the requested agent, if it can answer, and what serves it. Raises ``ApiError`` or ``Refusal``."""
    agent = _enabled_agents.first(request.model)
    if agent is None:
        raise ApiError(404, "model_not_found", f"The model {request.model!r} does not exist.", param="model")
    served = served_or_unknown(agent)
    if isinstance(served, UnknownModel) or served.unusable:
        raise Conflict("agent_unusable", str(served) if isinstance(served, UnknownModel) else served.unusable)
    _check_names(request, taken=tools_under(served.policy, agent))
    return agent, served


def _check_names(request: ChatRequest, taken: Collection[str]) -> None:
    for index, tool in enumerate(request.tools):
        if tool["name"] in taken:
            raise invalid(
                f"The agent has a tool named {tool['name']!r} of its own. Rename yours.",
                f"tools[{index}].function.name",
            )


@Select
def _enabled_agents(agent_id: str) -> QuerySet[Agent]:
    return Agent.objects.filter(pk=agent_id, enabled=True)
