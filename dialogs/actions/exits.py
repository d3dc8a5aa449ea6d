"""Exits of a question that suspends a dialog, each as a value (``docs/spec.md#critical-exits``).

A new exit is written here and named in ``EXITS``, which pages, admin, API and its OpenAPI description read. An exit
acts inside the change that closes its question, and an error that it raises leaves the question open.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal, InvalidOperation

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from dialogs.actions import messages, model_choice, rounds, suspension
from dialogs.context.counters import counters_of, set_counters
from dialogs.context.limits import catalog, larger_models, other_models, thresholds_of, unusable_reason
from dialogs.context.spending import spending_of
from dialogs.errors import Invalid
from dialogs.models import Dialog, PersonSettings, Question, Round, Turn
from dialogs.store.change import Change
from dialogs.store.text import unstorable_reason
from dominds.llm.catalog.catalog import UnknownModel
from remediation.spending import Spending, in_usd, is_amount

Options = Mapping[str, str]
SUSPENDING = {
    Question.Kind.CRITICAL: "critical question",
    Question.Kind.BUDGET: "question about the budget",
    Question.Kind.REFUSED: "question about a refusal",
}
UNLESS_BUDGET = (Question.Kind.CRITICAL, Question.Kind.REFUSED)
MOST_USD = 1_000_000
CENT = Decimal("0.01")


@dataclass(frozen=True, slots=True)
class TextField:
    """A field for a text that a person writes."""

    name: str
    label: str
    initial: Callable[[Question], str] = lambda question: ""
    max_length: int | None = None  # characters
    lines: int = 8
    keyboard: str = "text"  # of a phone, in words of HTML: `decimal` has digits alone

    @property
    def options(self) -> tuple[str, ...]:
        """Return the names under which programs send this field's value."""
        return (self.name,)

    def read(self, typed: str) -> dict[str, str]:
        """Return the value of a form's control, as options."""
        return {self.name: typed.replace("\r\n", "\n")}


@dataclass(frozen=True, slots=True)
class ChoiceField:
    """A field with a choice of values, as (value, label). A value for several ``options`` has slashes between them."""

    name: str
    label: str
    choices: Callable[[Question], Sequence[tuple[str, str]]]
    options: tuple[str, ...]
    max_length: int | None = None  # characters, of each option

    def read(self, chosen: str) -> dict[str, str]:
        return dict(zip(self.options, chosen.split("/", len(self.options) - 1), strict=False))


Field = TextField | ChoiceField


@dataclass(frozen=True, slots=True)
class Exit:
    """A way out of a suspension.

    ``label`` and ``help`` are for people. ``available`` says whether pages offer it; ``perform`` itself refuses what
    cannot be done. ``preview`` returns the text that it would use, for people to read first. Pages preselect the
    ``recommended`` exit, or else the first.
    """

    name: str  # at most 16 characters, since the question's row stores it
    label: str
    help: str
    perform: Callable[[Change, Question, User, Options], None]
    fields: tuple[Field, ...] = ()
    available: Callable[[Question], bool] = lambda question: True
    preview: Callable[[Question], str] = lambda question: ""
    recommended: bool = False
    is_final: bool = False  # it cannot be undone, so no single click in the dialog may take it
    kinds: tuple[str, ...] = (Question.Kind.CRITICAL,)  # the kinds of questions that it resolves

    def options_of(self, given: Mapping[str, object]) -> dict[str, str]:
        """Return this exit's options from those given, as texts that a database can hold. Raises ``Invalid``."""
        options = {}
        for field in self.fields:
            for name in field.options:
                value = given.get(name, "")
                if not isinstance(value, str):
                    raise Invalid(f"{name} is no text.")
                if problem := unstorable_reason(value):
                    raise Invalid(f"{name} {problem}. Remove it.")
                if field.max_length is not None and len(value) > field.max_length:
                    raise Invalid(f"{name} has {len(value):,} characters; at most {field.max_length:,} are accepted.")
                options[name] = value
        return options


def all_exits() -> tuple[Exit, ...]:
    return (*EXITS, *_registered)


def exit_named(name: str) -> Exit:
    """Return the exit of this name. Raises ``Invalid`` with the names that exist."""
    for known in all_exits():
        if known.name == name:
            return known
    raise Invalid(f"There is no exit {name!r}. The exits are: {', '.join(known.name for known in all_exits())}.")


def exits_for(kind: str) -> tuple[Exit, ...]:
    return tuple(known for known in all_exits() if kind in known.kinds)


def register(added: Exit) -> Callable[[], None]:
    """Offer one more exit in this process, after those of ``EXITS``, and return a function that takes it back.

    All exits share one form, so names of exits, and of their fields, must differ.
    """
    if added.name in {known.name for known in all_exits()}:
        raise ValueError(f"There is an exit {added.name!r} already.")
    taken = {field.name for known in all_exits() for field in known.fields}
    if shared := taken & {field.name for field in added.fields}:
        raise ValueError(f"Fields of another exit have these names: {', '.join(sorted(shared))}.")
    _registered.append(added)
    return lambda: _registered.remove(added)


_registered: list[Exit] = []


def begin_episode(dialog: Dialog) -> None:
    """Count the forced clears from zero again."""
    set_counters(dialog, replace(counters_of(dialog), failed_clears=0, clear_unproven=False))


def _clear(change: Change, question: Question, user: User, options: Options) -> None:
    package = rounds.checked_package(options["reminder_content"])
    suspension.resume(change)
    rounds.clear_within(change, package, cause=Round.Cause.PERSON)


def _accept_draft(change: Change, question: Question, user: User, options: Options) -> None:
    suspension.resume(change)
    rounds.clear_within(change, question.draft, cause=Round.Cause.PERSON)


def _retry(change: Change, question: Question, user: User, options: Options) -> None:
    """Send a refused request again unchanged, or begin a new episode of forced clears."""
    suspension.resume(change)
    begin_episode(change.dialog)


def _switch_model(change: Change, question: Question, user: User, options: Options) -> None:
    dialog = change.dialog
    provider, model = options["provider"] or dialog.provider_id, options["model"]
    if (provider, model) == (dialog.provider_id, dialog.model_id):
        raise Invalid(f"The dialog is answered by {model} already. Choose another model, or another exit.")
    try:
        unusable = catalog().model(provider, model).unusable
    except UnknownModel as error:
        raise Invalid(str(error)) from None
    model_choice.move(dialog, provider, model)
    if reason := unusable or unusable_reason(dialog):
        raise Invalid(reason)
    prompt, limit = dialog.prompt_tokens or 0, thresholds_of(dialog).context_limit
    if question.kind == Question.Kind.CRITICAL and limit and prompt > limit:
        raise Invalid(
            f"{model} takes {limit:,} tokens, and the last prompt had {prompt:,}. Choose a larger one, or another exit."
        )
    suspension.resume(change)
    begin_episode(dialog)


def _models(question: Question) -> list[tuple[str, str]]:
    """Return the models to move to: any other after a refusal, and only larger windows after a critical context."""
    if question.kind == Question.Kind.REFUSED:
        return [(name, _name_of(name)) for name in other_models(question.dialog)]
    return [
        (name, f"{_name_of(name)} · {f'{limit:,}' if limit else _('its server knows the window')}")
        for name, limit in larger_models(question.dialog)
    ]


def _name_of(model: str) -> str:
    """Return the name of a model given as ``provider/model``, with its provider, since several may have the model."""
    provider, _slash, model_id = model.partition("/")
    return f"{catalog().models[provider, model_id].name} ({provider})"


def _give_up(change: Change, question: Question, user: User, options: Options) -> None:
    change.dialog.failure = "This message was given up. Try again, or send another."
    change.end_message(Turn.Status.FAILED)


def _raise_budget(change: Change, question: Question, user: User, options: Options) -> None:
    """Raise the budget that is exceeded now. A budget that somebody raised meanwhile stays as it is."""
    dialog = change.dialog
    raised = _dollars(options["budget_usd"])
    spending = _spending_of(dialog)
    exceeded = spending.exceeded
    if exceeded:
        spent, _ = spending.of(exceeded)
        if raised <= spent:
            raise Invalid(f"A budget of {in_usd(raised)} is spent already: {in_usd(spent)}. Give a higher one.")
    if exceeded == "dialog":
        dialog.budget_usd = raised
    elif exceeded == "month":
        PersonSettings.objects.filter(user_id=dialog.owner_id).update(monthly_budget_usd=raised)
    suspension.resume(change)


def _dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text.strip().removeprefix("$"))
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 <= amount <= MOST_USD:
        found = repr(text) if text else "empty"
        raise Invalid(f"budget_usd is {found}, expected an amount in USD up to {MOST_USD:,}, such as 2.50.")
    return amount.quantize(CENT, ROUND_UP)


def _doubled_budget(question: Question) -> str:
    """Return twice the exceeded budget, and at least a cent."""
    spending = _spending_of(question.dialog)
    exceeded = spending.exceeded
    if exceeded is None:
        return ""
    spent, budget = spending.of(exceeded)
    known = budget if budget and is_amount(budget) else CENT
    return str(max(2 * known, spent + CENT).quantize(CENT, ROUND_UP))


def _spending_of(dialog: Dialog) -> Spending:
    return spending_of(Dialog.objects.whole().get(pk=dialog.pk))


def _close(change: Change, question: Question, user: User, options: Options) -> None:
    messages.close_within(change, user)


EXITS = (
    Exit(
        "clear",
        "Clear with this hand-over note",
        "a re-entry package: the agent goes on from it in a fresh round",
        _clear,
        fields=(
            TextField("reminder_content", "Hand-over note (re-entry package)", initial=lambda question: question.draft),
        ),
    ),
    Exit(
        "accept_draft",
        "Accept the drafted hand-over note",
        "as it was drafted from stored facts",
        _accept_draft,
        available=lambda question: bool(question.draft),
        preview=lambda question: question.draft,
        recommended=True,
    ),
    Exit("retry", "Try again", "with fresh attempts", _retry, kinds=UNLESS_BUDGET),
    Exit(
        "switch_model",
        "Move to another model",
        "which the dialog keeps from now on",
        _switch_model,
        fields=(ChoiceField("model", "Model", _models, options=("provider", "model"), max_length=120),),
        available=lambda question: bool(_models(question)),
        kinds=UNLESS_BUDGET,
    ),
    Exit(
        "give_up",
        "Give the message up",
        "it stays unanswered, and the next one can be sent",
        _give_up,
        kinds=(Question.Kind.REFUSED,),
    ),
    Exit(
        "raise_budget",
        "Continue with a raised budget",
        "in USD, which holds from now on",
        _raise_budget,
        fields=(
            TextField(
                "budget_usd", "New budget in USD", initial=_doubled_budget, max_length=20, lines=1, keyboard="decimal"
            ),
        ),
        kinds=(Question.Kind.BUDGET,),
    ),
    Exit("close", "Close the dialog", "it stays readable", _close, is_final=True, kinds=tuple(SUSPENDING)),
)
