"""Rows of questions for humans (Q4H): how each is opened and closed, who is notified, and how it allows a tool call.

A person allows a tool call by answering an ordinary question, so every way of answering questions works for that.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop, override

from dialogs.context.tool_calls import Result
from dialogs.context.view import Call
from dialogs.errors import Invalid
from dialogs.extension import installed_extensions
from dialogs.models import Dialog, Question
from dialogs.store.change import Change
from dominds import telemetry
from dominds.visible_text import visible

ALLOW = gettext_noop("Allow")
ALLOW_ALWAYS = gettext_noop("Always allow in this dialog")
REFUSE = gettext_noop("Refuse")
ALLOWING = (ALLOW, ALLOW_ALWAYS)
APPROVALS = (*ALLOWING, REFUSE)
INSTEAD = "instead"  # ``action`` of a question about a call whose result a person wrote, in place of the tool
INSTEAD_LABEL = gettext_noop("Answered instead of the tool")


def open_question(change: Change, kind: str, text: str, **columns: Any) -> Question:
    """Ask a person, who is notified after the commit."""
    question = Question.objects.create(dialog=change.dialog, kind=kind, text=text, **columns)
    change.question_event(question)
    for extension in installed_extensions():
        extension.question_opened(question)
    return question


def close_question(change: Change, question: Question, user: User | None, state: str) -> None:
    """Close a question. ``user`` is None if the runtime closes it. Other columns that were set are stored as well."""
    question.state, question.resolved_by, question.resolved_at = state, user, timezone.now()
    question.save()
    change.question_event(question)
    attributes: dict[str, telemetry.Value] = {
        "gen_ai.conversation.id": str(change.dialog.pk),
        "dominds.question.kind": question.kind,
        "dominds.question.state": state,
    }
    telemetry.record("wait_for_person", attributes, question.created_at, question.resolved_at)
    for extension in installed_extensions():
        extension.question_closed(question)


def ask_for_approval(change: Change, tool: str, call: Call, arguments: Mapping[str, Any]) -> None:
    """Ask whether a call may run. ``tool`` is the tool's identity, which the answer "always" allows."""
    text = f"{Question.APPROVAL.format(tool=call.name)}\n\n{_render_arguments(call, arguments)}"
    about = {"tool_call_id": call.id, "approves": tool, "choices": list(APPROVALS)}
    open_question(change, Question.Kind.QUESTION, text, **about)


def ask_for_tool(change: Change, tool: str, call: Call, text: str, choices: Sequence[str]) -> None:
    """Ask a question of a running tool. ``tool`` is its identity."""
    about = {"tool_call_id": call.id, "asked_by": tool, "choices": list(choices)}
    open_question(change, Question.Kind.QUESTION, text, **about)


def answers_for_tool(dialog: Dialog, tool: str, call: Call) -> dict[str, str]:
    """Return a person's answers to the questions that the tool asked in this call, by question."""
    asked = dialog.questions.filter(state=Question.State.ANSWERED, asked_by=tool, tool_call_id=call.id)
    return dict(asked.filter(created_at__gte=_made_at(dialog, call)).values_list("text", "answer"))


def _render_arguments(call: Call, arguments: Mapping[str, Any]) -> str:
    """Return the arguments as JSON in which every character is visible, so that they cannot pass for others."""
    try:
        text = json.dumps(arguments, indent=2, ensure_ascii=False)
    except RecursionError:  # nested a thousand deep
        text = call.arguments
    return visible(text)


def approval_of(dialog: Dialog, tool: str, call: Call) -> Question | None:
    """Return the question by which a person allowed this call, or all calls of this tool in this dialog."""
    answered = dialog.questions.filter(state=Question.State.ANSWERED, approves=tool).exclude(action=INSTEAD)
    this_one = Q(answer=ALLOW, tool_call_id=call.id, created_at__gte=_made_at(dialog, call))
    return answered.filter(Q(answer=ALLOW_ALWAYS) | this_one).order_by("-created_at").first()


def _made_at(dialog: Dialog, call: Call) -> Any:
    """Return a subquery for the time of a call: an earlier question was about another call with the same id."""
    return dialog.turns.filter(position=call.position).values("created_at")[:1]


def edited_in(question: Question, arguments: str) -> str:
    """Return the arguments that a person changed before allowing the call, as JSON, or an empty text."""
    if not question.approves or not arguments.strip():
        return ""
    try:
        edited = json.loads(arguments)
        before = json.loads(question.arguments)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            gettext("The arguments are not JSON: {reason}. Nothing was allowed.").format(reason=error)
        ) from None
    if not isinstance(edited, dict):
        raise Invalid(gettext("The arguments are to be one JSON object. Nothing was allowed."))
    return "" if edited == before else json.dumps(edited, ensure_ascii=False)


def approval_in(answer: str) -> str:
    """Return the choice that an answer names, in any case or language. Other words, a refusal, are returned as they
    are.
    """
    written = answer.strip().rstrip(".!\u3002\uff01").casefold()
    return next((choice for choice in APPROVALS if written in _translations(choice)), answer)


@cache
def _translations(choice: str) -> frozenset[str]:
    words = {choice.casefold()}
    for language, _name in settings.LANGUAGES:
        with override(language):
            words.add(gettext(choice).casefold())
    return frozenset(words)


def result_instead(words: str) -> Result:
    """Return a result that a person wrote in place of the tool."""
    return Result(f"[The tool was not run. A person answered in its place:]\n{words}")


def refusal_in(answer: str) -> Result | None:
    """Return the result of a call that was refused or whose question was cancelled; None if the call may run."""
    if answer in ALLOWING:
        return None
    why = "" if answer in ("", REFUSE) else f" Their words: {answer}"
    return Result(f"Not run: a person refused this call. Do not repeat it as it was.{why}", failed=True)
