"""Prepares a post: what is counted, or asked of a server, before a dialog's row is locked, since others wait for the
lock."""

from collections.abc import Mapping
from dataclasses import dataclass

from dialogs.actions import imported_turns, messages
from dialogs.actions.access import with_agent
from dialogs.actions.attachments import text_with
from dialogs.context.served import Served, served_or_unknown
from dialogs.context.tool_calls import Result
from dialogs.context.view import View, view_of_turns
from dialogs.extras.v1 import lifetime, options
from dialogs.extras.v1.errors import invalid
from dialogs.extras.v1.finding import is_background
from dialogs.extras.v1.forks import message_of
from dialogs.extras.v1.history import LEADS, Conversation
from dialogs.extras.v1.matching.incoming import Incoming
from dialogs.extras.v1.placing import Named, Place
from dialogs.models import Client, Dialog
from dialogs.runtime.oversized_results import Judged, judge_results
from dominds.llm.catalog.catalog import UnknownModel


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request's account of its program, the results that it brings as the model will see them, and the reason why
    nobody can answer it, if there is one."""

    client: Client
    results: Mapping[str, Judged]
    unusable: str
    is_background: bool


def prepare(place: Place) -> Prepared:
    """Prepare a request for its place. Raises ``ApiError`` or ``Refusal`` for what the model there does not take."""
    incoming, client = place.incoming, _client(place.incoming)
    request, conversation = incoming.request, incoming.conversation
    stored = with_agent.first(place.dialog_id) if place.dialog_id else None
    dialog = stored or _dialog_to_come(incoming, client)
    dialog.context_policy = request.policy
    served = served_or_unknown(dialog)
    lifetime.check_policy(request.policy, served)
    if isinstance(served, Served):  # an unknown model is refused later, as unusable
        options.check_model_honours(served.model, incoming.agent.model_params, request.params)
        _check_blank(conversation, served)
    results = {message.call_id: Result(message.text) for message in conversation.results}
    view = _view_to_come(dialog, conversation) if results and not stored else None
    is_in_conversation = isinstance(place, Named) and dialog.last_turn_seq > 0
    return Prepared(
        client=client,
        results=judge_results(dialog, served, results, view),
        unusable=_unusable(dialog, conversation, served) if request.is_asking else "",
        is_background=place.is_aside or (not is_in_conversation and is_background(incoming)),
    )


def _check_blank(conversation: Conversation, served: Served) -> None:
    text, attached = conversation.as_one()
    if conversation.has_message and not (text.strip() or attached or served.model.kind.takes_blank):
        raise invalid("The message is empty: the API of its model takes none without text.", "messages")


def _client(incoming: Incoming) -> Client:
    """Return what the request says of its program, without a dialog yet."""
    request, keys = incoming.request, incoming.keys
    return Client(
        key=incoming.key,
        first=keys.first,
        newest=keys.newest,
        messages_digest=keys.whole,
        end_user=request.end_user,
        instructions=request.instructions,
        tools=request.tools,
        required_tool=request.required_tool,
        params=request.params or None,
    )


def _dialog_to_come(incoming: Incoming, client: Client) -> Dialog:
    """Return the dialog that a new conversation becomes, without a row. It knows its client."""
    dialog = Dialog(owner=incoming.key.owner, agent=incoming.agent)
    client.dialog = dialog
    client.system_messages = [(LEADS, one.text) for one in incoming.conversation.system if one.leads] or None
    return dialog


def _view_to_come(dialog: Dialog, conversation: Conversation) -> View:
    return view_of_turns(dialog, imported_turns.turns_of(dialog, [message_of(one) for one in conversation.before]))


def _unusable(dialog: Dialog, conversation: Conversation, served: Served | UnknownModel) -> str:
    """Return the reason why nobody can answer the message. One that is too long to be stored is refused for that."""
    text = text_with(conversation.message, conversation.attached)[: messages.MAX_MESSAGE_BYTES]
    return messages.unusable(dialog, conversation.attached, text, served=served)
