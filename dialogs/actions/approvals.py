"""What allows a call of a tool: the words that ask for it, and the answers.

A call is asked for by an ordinary question, so every way to answer one will do.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext, gettext_noop, override

from dialogs.context.tool_calls import Result
from dialogs.context.view import Call
from dialogs.models import Dialog, Question

ALLOW = gettext_noop("Allow")
ALLOW_ALWAYS = gettext_noop("Always allow in this dialog")
REFUSE = gettext_noop("Refuse")
CHOICES = (ALLOW, ALLOW_ALWAYS, REFUSE)
ASKS = gettext_noop("Allow {tool} to run with these arguments? Any other answer refuses.")

_OTHER = re.compile(r"[^ -~\n]")  # than printable ASCII and the lines of JSON
_UNSEEN = ("Cc", "Cf", "Zl", "Zp")  # categories of characters that no eye sees, or that turn round what does


def question_about(call: Call, arguments: Mapping[str, Any]) -> str:
    return f"{ASKS.format(tool=call.name)}\n\n{_shown(call, arguments)}"


def _shown(call: Call, arguments: Mapping[str, Any]) -> str:
    """As JSON in which everything is seen: nothing may make it read as other arguments."""
    try:
        text = json.dumps(arguments, indent=2, ensure_ascii=False)
    except RecursionError:  # nested a thousand deep
        text = call.arguments
    return _OTHER.sub(_seen, text)


def _seen(character: re.Match[str]) -> str:
    return json.dumps(character[0])[1:-1] if unicodedata.category(character[0]) in _UNSEEN else character[0]


def approval_of(dialog: Dialog, tool: str, call: Call) -> Question | None:
    """By what a person allowed this call, or all calls of this tool in this dialog. A question before the reply was about
    another call of the same id."""
    answered = dialog.questions.filter(state=Question.State.ANSWERED, approves=tool)
    made_at = dialog.turns.filter(position=call.position).values("created_at")[:1]
    this_one = Q(answer=ALLOW, tool_call_id=call.id, created_at__gte=made_at)
    return answered.filter(Q(answer=ALLOW_ALWAYS) | this_one).order_by("-created_at").first()


def approval_in(answer: str) -> str:
    """The choice that somebody wrote, in whatever case and language; other words, which refuse, as they are."""
    written = answer.strip().rstrip(".!\u3002\uff01").casefold()
    return next((choice for choice in CHOICES if written in _translations(choice)), answer)


@cache
def _translations(choice: str) -> frozenset[str]:
    words = {choice.casefold()}
    for language, _name in settings.LANGUAGES:
        with override(language):
            words.add(gettext(choice).casefold())
    return frozenset(words)


def refusal_in(answer: str) -> Result | None:
    """The result of a call that was refused, or whose question was cancelled; None of one that runs."""
    if answer in (ALLOW, ALLOW_ALWAYS):
        return None
    why = "" if answer in ("", REFUSE) else f" Their words: {answer}"
    return Result(f"Not run: a person refused this call. Do not repeat it as it was.{why}", failed=True)
