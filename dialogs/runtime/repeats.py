"""Refusals that another form of the same attempt may avoid, and refusals that only a person can end.

After a refusal of the first sort the attempt is repeated in another form, once for each kind of refusal. That does not
count as a try.
"""

import re
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from dialogs.context.connected import share_learned
from dialogs.context.images import unseen_images
from dialogs.context.limits import model_of, policy_of
from dialogs.context.model_calls import ModelCall
from dialogs.context.provider_cursor import cursor_of
from dialogs.context.request import Form
from dialogs.models import ContextState, Dialog, ForcingRefusal, Generation
from dialogs.runtime.attempts import Attempt
from dialogs.runtime.stream_reply import Reply
from dialogs.store.text import as_sentence
from dominds.db.prepared import Select
from dominds.llm.messages import NO_TOOL, Request
from dominds.llm.models.learned import learn
from dominds.llm.models.model import ModelInfo
from dominds.llm.models.room import LEAST_OUTPUT_TOKENS
from dominds.llm.provider import (
    AccessDenied,
    AuthFailed,
    ContextOverflow,
    ForcingRefused,
    ImagesRefused,
    OutputAboveMaximum,
    OutputBudgetTooLarge,
    ProviderError,
    RefusedForGood,
    RequestRefused,
    StaleReasoning,
    SystemRefused,
    TooLargeForRate,
)
from dominds.llm.providers.parts import ends_with_files
from dominds.llm.stream import FinishReason
from remediation.policies.retention import PRUNE

REFUSAL_COUNTS = timedelta(days=30)  # how long a refusal to be forced is believed: the server may learn it
ROOM_SHARE = 0.9  # share of the room by a provider's numbers, some of which state a lower bound of the prompt
RATE_NUMBERS = re.compile(r"limit:? (\d[\d,]*).{0,20}requested:? (\d[\d,]*)", re.I)  # OpenAI, Groq
# Keys of ``dialog.repeats``: the forms in which the attempt is repeated. Most have the value True.
UNFORCED = "unforced"  # no tool is forced
OUTPUT = "output"  # less output is asked for: the tokens
STALE = "stale"  # earlier reasoning is not sent
SYSTEM = "system"  # no system message stands in the middle
UNSEEN = "unseen"  # lines of text stand for images
SHORTER = "shorter"  # the request is made shorter: the share that may be sent
REFUSALS = tuple(
    error.kind
    for error in (
        AccessDenied,
        AuthFailed,
        RequestRefused,
        RefusedForGood,
        ForcingRefused,
        SystemRefused,
        ImagesRefused,
        StaleReasoning,
    )
)
ANSWERS = (Generation.Purpose.REPLY, Generation.Purpose.FORCED_CLEAR)
# The models that refused system messages in the middle of a conversation in this process.
_without_system: set[tuple[str, str]] = set()


def repeat_within(dialog: Dialog, attempt: Attempt, error: ProviderError | None) -> bool:
    """Decide whether to repeat the attempt. If so, ``dialog.repeats`` says in which form."""
    request = attempt.prepared.request
    model = model_of(dialog)
    if is_new := error is not None and learn(model, error):
        share_learned(model)
    match error:
        case StaleReasoning() if STALE not in dialog.repeats:
            new_epoch(dialog)
            dialog.repeats = {**dialog.repeats, STALE: True}
        case SystemRefused() if attempt.prepared.system and SYSTEM not in dialog.repeats:
            _without_system.add((attempt.generation.provider, attempt.generation.model))
            dialog.repeats = {**dialog.repeats, SYSTEM: True}
        case ImagesRefused() if ends_with_files(request):
            return False  # the newest message has the image: its sender is told that the model did not see it
        case ImagesRefused() if UNSEEN not in dialog.repeats and unseen_images(model_of(dialog)):
            dialog.repeats = {**dialog.repeats, UNSEEN: True}
        case OutputBudgetTooLarge() if OUTPUT not in dialog.repeats and (less := less_output(request, error)):
            dialog.repeats = {**dialog.repeats, OUTPUT: less}
        case OutputAboveMaximum(most=most) if OUTPUT not in dialog.repeats and most and most >= LEAST_OUTPUT_TOKENS:
            dialog.repeats = {**dialog.repeats, OUTPUT: most}
        case TooLargeForRate() if SHORTER not in dialog.repeats and (verb := _verb_for(dialog)):
            dialog.requested_rewrite = verb
            dialog.repeats = {**dialog.repeats, SHORTER: _share_within_rate(error)}
        case ForcingRefused() if request.force and not is_new:
            _remember_unforced(attempt, str(error))
            dialog.repeats = {**dialog.repeats, UNFORCED: True}
        case RequestRefused() if type(error) is RequestRefused and attempt.forced and request.force:
            # Set even for other refusals, since not all providers name the reason.
            dialog.repeats = {**dialog.repeats, UNFORCED: True}
        case ContextOverflow():
            return False  # the refusal may have told the window, with which policies decide again
        case _:
            return is_new
    return True


def note_ignored(attempt: Attempt, reply: Reply) -> None:
    """Note that the server ignored a forced tool, so that requests to its model ask for tools in words from now on.

    A model is corrected only if its support is assumed by its kind of server, and not if the catalog states it.
    """
    if attempt.prepared.request.force in (None, NO_TOOL) or reply.tool_calls:
        return
    model = model_of(attempt.generation.dialog)
    is_assumed = model.supports_tool_choice is None and not model.forced_tool
    if is_assumed and reply.finish_reason == FinishReason.STOP:
        _remember_unforced(attempt, "It answered without the call that it was to make.")


def _remember_unforced(attempt: Attempt, reason: str) -> None:
    call, row = attempt.generation, {"reason": reason, "refused_at": Now()}
    ForcingRefusal.objects.update_or_create(provider=call.provider, model=call.model, defaults=row)


def _share_within_rate(error: TooLargeForRate) -> float:
    """Return the share of the request that the provider's own numbers allow, or a half if it names none."""
    found = RATE_NUMBERS.search(str(error))
    if found is None:
        return 0.5
    limit, requested = (int(number.replace(",", "")) for number in found.groups())
    return round(min(1.0, limit / max(requested, 1)) * ROOM_SHARE, 3)


def _verb_for(dialog: Dialog) -> str:
    """Return the verb of the rewrite that makes requests shorter; empty if the policy has none or nothing changed.

    A policy whose rewrite people cannot ask for by hand uses pruning.
    """
    policy = policy_of(dialog).policy
    by_hand = policy.by_hand or (PRUNE.by_hand if policy.rewrite else None)
    return by_hand.verb if by_hand and dialog.changed_since_rewrite else ""


def lasting_refusal(attempt: Attempt, error: ProviderError | None) -> str:
    """Return why the message has to wait for a person, or an empty text if it just fails."""
    dialog = attempt.generation.dialog
    if not isinstance(error, RequestRefused | AuthFailed) or not asks_person(dialog):
        return ""
    if isinstance(error, RefusedForGood):
        return str(error)
    before = dialog.generations.filter(pk__lt=attempt.generation.pk, purpose__in=ANSWERS)
    counting = before.filter(Q(outcome=Generation.Outcome.KEPT) | Q(error_kind__in=REFUSALS))
    last_error = counting.order_by("-pk").values_list("error", flat=True).first()
    same = last_error is not None and _words(last_error) == _words(str(error))
    return f"{as_sentence(str(error))} It said the same twice in a row." if same else ""


def asks_person(dialog: Dialog) -> bool:
    """Check whether a person is asked about a failure that no further attempt avoids.

    A program's message fails instead: the program is told at once, and asks again when somebody has acted.
    """
    return dialog.origin == Dialog.Origin.PERSON


def _words(refusal: str) -> list[str]:
    """Return a refusal's words without numbers, and without the ids that some providers give each request."""
    return [word for word in refusal.split() if not any(map(str.isdigit, word))]


def new_epoch(context_state: ContextState) -> None:
    """Begin a new epoch of the context, in which earlier reasoning is not sent."""
    context_state.context_epoch += 1
    context_state.statements = []


def less_output(request: Request, error: OutputBudgetTooLarge) -> int | None:
    """Return the tokens of output to ask for instead, or None if too little room is left."""
    room = error.room
    less = (request.max_output_tokens or error.output_tokens or 0) // 2 if room is None else int(room * ROOM_SHARE)
    return less if less >= LEAST_OUTPUT_TOKENS else None


def form_of(dialog: Dialog, model: ModelInfo, call: ModelCall) -> Form:
    """Return the form in which the model takes the call. Its chat template decides about system messages, and templates
    differ even on one kind of server.
    """
    key = (model.provider_id, model.model_id)
    is_forcible = not call.required_tool or (UNFORCED not in dialog.repeats and _refusals.first(*key) is None)
    takes_system = SYSTEM not in dialog.repeats and key not in _without_system
    return Form(is_forcible, takes_system, cursor_of(dialog, model))


@Select
def _refusals(provider: str, model: str) -> QuerySet[ForcingRefusal, Any]:
    refusals = ForcingRefusal.objects.filter(provider=provider, model=model, refused_at__gt=Now() - REFUSAL_COUNTS)
    return refusals.values_list("pk")[:1]
