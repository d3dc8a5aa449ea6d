"""What must hold whatever was broken: plain functions over the rows, each naming what it found.

Numbers are those of the invariants. A function yields one sentence for each breach and nothing when all is well.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from dialogs.actions.exits import SUSPENDING
from dialogs.models import Dialog, Generation, Question, Round, Turn
from dialogs.state import state_of
from dialogs.store.change import facts_of
from dominds.db.prepared import Select
from dominds.llm.usage import Usage, UsageReport, UsageUnavailable
from health.levels import Thresholds, UnknownReason, judge
from remediation.guidance import MAX_FORCED_CLEARS
from tests.dialogs.event_lists import events_of

ENDED = {"answered", "failed", "stopped", "superseded"}
PENDING = {"queued", "answering", "suspended"}
SENTINEL = re.compile(r"snt-[0-9a-f]{8}")  # each answer of the tests' provider carries one of its own
GUIDANCE = "Context guidance from the runtime"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as the provider's own log has it."""

    sentinel: str
    dialog: str  # what the test wrote into the dialog's messages to know it by
    at: float  # time.time()


@dataclass(frozen=True)
class Evidence:
    """What the rows are held against: what clients were told, and what the provider saw."""

    accepted: Mapping[str, str] = field(default_factory=dict)  # client_message_id -> text, of every 202
    asked: tuple[Asked, ...] = ()
    secrets: tuple[str, ...] = ()
    log_files: tuple[Path, ...] = ()
    settled: bool = True  # nothing is owed any more


@dataclass(frozen=True, slots=True)
class Stored:
    """A dialog with what is stored of it, read once for all checks."""

    dialog: Dialog
    turns: list[Turn]  # with their generations
    generations: list[Generation]  # with their snapshots
    rounds: list[Round]
    questions: list[Question]
    events: list[dict[str, Any]]

    @classmethod
    def of(cls, dialog: Dialog) -> "Stored":
        key = dialog.pk
        return cls(dialog, _turns(key), _generations(key), _rounds(key), _questions(key), events_of(dialog))

    def turns_of(self, role: str) -> list[Turn]:
        return [turn for turn in self.turns if turn.role == role]

    def has_open_question(self, *kinds: str) -> bool:
        return any(question.state == "open" and question.kind in kinds for question in self.questions)


@Select
def _turns(dialog_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.filter(dialog=dialog_id).select_related("generation").order_by("seq")


@Select
def _generations(dialog_id: UUID) -> QuerySet[Generation]:
    return Generation.objects.filter(dialog=dialog_id).select_related("snapshot").order_by("pk")


@Select
def _rounds(dialog_id: UUID) -> QuerySet[Round]:
    return Round.objects.filter(dialog=dialog_id).order_by("number")


@Select
def _questions(dialog_id: UUID) -> QuerySet[Question]:
    return Question.objects.filter(dialog=dialog_id).order_by("pk")


def breaches(dialogs: Iterable[Dialog], evidence: Evidence | None = None) -> list[str]:
    """Every breach of every invariant."""
    evidence = evidence or Evidence()
    results = [f"{dialog.pk}: {breach}" for dialog in dialogs for breach in of_dialog(dialog, evidence.settled)]
    return results + [breach for check in OF_EVIDENCE for breach in check(evidence)]


def of_dialog(dialog: Dialog, settled: bool = True) -> Iterator[str]:
    """Every breach of what holds for a dialog, and for one that is owed nothing any more if it has ``settled``."""
    stored = Stored.of(dialog)
    for check in (*OF_DIALOGS, nothing_is_owed) if settled else OF_DIALOGS:
        yield from check(stored)


# -- of each dialog ----------------------------------------------------------------------------------------------------


def state_is_that_of_its_rows(stored: Stored) -> Iterator[str]:
    expected = state_of(facts_of(stored.dialog))
    if stored.dialog.state != expected:
        yield f"state is {stored.dialog.state}, its rows say {expected}"


def messages_end_once(stored: Stored) -> Iterator[str]:
    """I1."""
    dialog, messages = stored.dialog, stored.turns_of(Turn.Role.USER)
    for turn in messages:
        if turn.status not in ENDED | PENDING:
            yield f"I1: message {turn.seq} is {turn.status}"
        if turn.status == "suspended" and not stored.has_open_question(*SUSPENDING):
            yield f"I1: message {turn.seq} is suspended without its Q4H"
        if turn.status == "answering" and dialog.answering_seq != turn.seq:
            yield f"I1: message {turn.seq} is being answered, the dialog says {dialog.answering_seq}"
    answers = Counter(
        turn.generation.answers_seq
        for turn in stored.turns_of(Turn.Role.ASSISTANT)
        if turn.status == "complete" and turn.tool_calls is None and turn.generation is not None
        if turn.generation.dialog_id == dialog.pk and turn.generation.outcome == "kept"
    )
    for turn in messages:
        if turn.status == "answered" and answers[turn.seq] != 1:
            yield f"I1: message {turn.seq} is answered, by {answers[turn.seq]} answers"


def nothing_is_owed(stored: Stored) -> Iterator[str]:
    """I1, once everything has had its time."""
    dialog = stored.dialog
    if dialog.state in ("queued", "generating"):
        yield f"I1: still {dialog.state}: owner {dialog.lease_owner!r}, wake_at {dialog.wake_at}"
    if dialog.state in ("idle", "failed", "closed"):
        for turn in stored.turns_of(Turn.Role.USER):
            if turn.status in PENDING:
                yield f"I1: message {turn.seq} is {turn.status} in a dialog that is {dialog.state}"
    if running := sum(row.outcome == "running" for row in stored.generations):
        yield f"I1: {running} generations run in a dialog that is {dialog.state}"


def turns_are_stored_once(stored: Stored) -> Iterator[str]:
    """I2. A clear by force stores a call and its result of one generation; only the call names it."""
    for generation, times in Counter(turn.generation_id for turn in stored.turns).items():
        if generation is not None and times > 1:
            yield f"I2: generation {generation} has {times} turns"
    for position, times in Counter(turn.position for turn in stored.turns).items():
        if position is not None and times > 1:
            yield f"I2: position {position} is taken {times} times"
    if stored.dialog.last_turn_seq != len(stored.turns):
        yield f"I2: {len(stored.turns)} turns, numbered up to {stored.dialog.last_turn_seq}"


def only_kept_attempts_left_turns(stored: Stored) -> Iterator[str]:
    """I3. What a person stopped, and the partial answer of a message that failed, stand as such."""
    allowed = {"kept": {"complete", "interrupted"}, "stopped": {"stopped"}, "failed": {"failed"}}
    for turn in stored.turns:
        if turn.generation is not None and turn.status not in allowed.get(turn.generation.outcome, set()):
            yield f"I3: generation {turn.generation.pk} is {turn.generation.outcome}, its turn {turn.status}"
        if turn.generation is None and turn.role == Turn.Role.ASSISTANT:
            yield f"I3: answer {turn.seq} is of no generation"


def epochs_grow(stored: Stored) -> Iterator[str]:
    """I4."""
    epochs = [row.epoch for row in stored.generations]
    if epochs != sorted(epochs) or any(epoch > stored.dialog.epoch for epoch in epochs):
        yield f"I4: epochs of the generations are {epochs}, the dialog is at {stored.dialog.epoch}"


def generations_have_usage_and_health(stored: Stored) -> Iterator[str]:
    """I5."""
    for row in stored.generations:
        snapshot = getattr(row, "snapshot", None)
        if row.purpose in ("prune", "summary") or row.outcome in ("crashed", "running"):
            continue
        if snapshot is None:
            if row.outcome in ("kept", "discarded", "failed"):
                yield f"I5: generation {row.pk}, {row.outcome}, has no snapshot"
            continue
        if row.prompt_tokens == 0 or snapshot.prompt_tokens == 0:
            yield f"I5: generation {row.pk} counts zero prompt tokens"
        usage: UsageReport = UsageUnavailable()
        if snapshot.prompt_tokens is not None:
            usage = Usage(snapshot.prompt_tokens, snapshot.completion_tokens or 0, snapshot.total_tokens)
        limits = Thresholds(snapshot.model_context_limit, snapshot.optimal_max_tokens, snapshot.critical_max_tokens)
        suspected = snapshot.reason == UnknownReason.TRUNCATION_SUSPECTED
        expected = judge(usage, limits, truncation_suspected=suspected)
        if (snapshot.level, snapshot.reason) != (expected.level, expected.reason or ""):
            yield f"I5: generation {row.pk} is {snapshot.level} {snapshot.reason}, by its numbers {expected.level}"
        if row.outcome in ("kept", "discarded") and row.prompt_tokens != snapshot.prompt_tokens:
            yield f"I5: generation {row.pk} reports {row.prompt_tokens}, its snapshot {snapshot.prompt_tokens}"


def forced_attempts_are_bounded(stored: Stored) -> Iterator[str]:
    """I7. Only refusals count: not crashes, not provider errors, not what a person stopped."""
    refused = Counter(
        row.clear_episode
        for row in stored.generations
        if row.purpose == "forced_clear" and row.outcome == "discarded" and row.clear_episode is not None
    )
    retried = sum(row.kind == Question.Kind.CRITICAL and row.action == "retry" for row in stored.questions)
    for episode, times in refused.items():
        if times > MAX_FORCED_CLEARS * (1 + retried):
            yield f"I7: {times} refused attempts in episode {episode}"
    if stored.dialog.failed_clears > MAX_FORCED_CLEARS:
        yield f"I7: {stored.dialog.failed_clears} failed clears"


def an_old_report_counts_no_more(stored: Stored) -> Iterator[str]:
    """I8."""
    dialog, rounds = stored.dialog, [row.number for row in stored.rounds]
    if rounds != list(range(1, dialog.round_number + 1)):
        yield f"I8: the dialog is in round {dialog.round_number}, rounds are {rounds}"
    reported = any(
        row.round_number == dialog.round_number
        and row.outcome in ("kept", "discarded")
        and row.purpose in ("reply", "forced_clear")
        for row in stored.generations
    )
    if not reported and dialog.prompt_tokens is not None:
        yield f"I8: nothing was reported in round {dialog.round_number}, yet the level rests on {dialog.prompt_tokens}"


def calls_have_one_result(stored: Stored) -> Iterator[str]:
    """I10."""
    results = Counter(turn.tool_call_id for turn in stored.turns_of(Turn.Role.TOOL))
    for call_id, times in results.items():
        if times > 1:
            yield f"I10: call {call_id} has {times} results"
    called = {call["id"] for turn in stored.turns_of(Turn.Role.ASSISTANT) for call in turn.tool_calls or ()}
    for call_id in set(results) - called:
        yield f"I10: result of {call_id}, which nobody called"
    if stored.dialog.state in ("idle", "failed"):
        for call_id in sorted(called - set(results)):
            yield f"I10: call {call_id} has no result, and the dialog is {stored.dialog.state}"


def events_are_gapless(stored: Stored) -> Iterator[str]:
    """I11."""
    seqs, last = [event["seq"] for event in stored.events], stored.dialog.last_event_seq
    if seqs != list(range(1, last + 1)):
        missing = sorted(set(range(1, last + 1)) - set(seqs))
        yield f"I11: {len(seqs)} events up to {last}, missing {missing[:10]}"


def events_tell_every_turn_and_state(stored: Stored) -> Iterator[str]:
    """I9: who follows the events ends with what the rows say."""
    happened = stored.events
    turns = {event["data"]["seq"] for event in happened if event["type"] == "turn" and "seq" in event["data"]}
    for seq in {turn.seq for turn in stored.turns} - turns:
        yield f"I9: no event tells of turn {seq}"
    states = [event["data"]["state"] for event in happened if event["type"] == "state"]
    if states and states[-1] != stored.dialog.state:
        yield f"I9: the last state told is {states[-1]}, the dialog is {stored.dialog.state}"
    outcomes = {event["data"]["id"]: event["data"]["outcome"] for event in happened if event["type"] == "generation"}
    for row in stored.generations:
        if row.outcome not in ("running", outcomes.get(row.pk)):
            yield f"I9: generation {row.pk} is {row.outcome}, told was {outcomes.get(row.pk)}"


def at_most_one_question_is_open(stored: Stored) -> Iterator[str]:
    if (n := sum(question.state == "open" for question in stored.questions)) > 1:
        yield f"{n} questions are open"


# -- of clients and provider -------------------------------------------------------------------------------------------


def nothing_accepted_is_lost(evidence: Evidence) -> Iterator[str]:
    """I1: each 202 is one turn with exactly that text."""
    for client_id, text in evidence.accepted.items():
        results = list(Turn.objects.filter(client_message_id=client_id).values_list("text", flat=True))
        if results != [text]:
            yield f"I1: message {client_id} was accepted, its turns are {results!r}"


def discarded_output_is_nowhere(evidence: Evidence) -> Iterator[str]:
    """I3: whatever the provider said that no turn holds, no text column of any table holds either."""
    texts = Turn.objects.exclude(role=Turn.Role.TOOL).values_list("text", "tool_calls")
    kept = {sentinel for turn in texts for sentinel in SENTINEL.findall(str(turn))}
    ours = {asked.sentinel for asked in evidence.asked}
    for table, column, text in text_values(SENTINEL.pattern) if ours else ():
        for sentinel in set(SENTINEL.findall(text)) & ours - kept:
            yield f"I3: {sentinel}, which no turn holds, stands in {table}.{column}"
    for text in Turn.objects.filter(role="assistant").values_list("text", flat=True):
        if len(set(SENTINEL.findall(text))) > 1:
            yield f"I3: one answer mixes the attempts {sorted(set(SENTINEL.findall(text)))}"


def suspended_dialogs_ask_nothing(evidence: Evidence) -> Iterator[str]:
    """I6, with the provider's log as witness. Both clocks are this machine's."""
    for question in Question.objects.filter(kind=Question.Kind.CRITICAL):
        marks = set(re.findall(r"dlg-[0-9a-f]{8}", " ".join(question.dialog.turns.values_list("text", flat=True))))
        until = question.resolved_at.timestamp() if question.resolved_at else float("inf")
        for asked in evidence.asked:
            if asked.dialog in marks and question.created_at.timestamp() < asked.at < until:
                yield f"I6: {asked.dialog} asked at {datetime.fromtimestamp(asked.at)} while suspended"


def guidance_is_stored_nowhere(evidence: Evidence) -> Iterator[str]:
    """I7."""
    for table, column, text in text_values(re.escape(GUIDANCE)):
        yield f"I7: guidance stands in {table}.{column}: {text[:60]!r}"


def logs_hold_no_conversation(evidence: Evidence) -> Iterator[str]:
    """I3, I14: what was said is in rows, and what was thrown away in a log of its own."""
    ours = {asked.sentinel for asked in evidence.asked}
    for file in evidence.log_files:
        if result := ours & set(SENTINEL.findall(file.read_text(errors="replace"))):
            yield f"I14: {file.name} holds {len(result)} answers, {min(result)} among them"


def secrets_are_nowhere(evidence: Evidence) -> Iterator[str]:
    """I14."""
    for secret in evidence.secrets:
        for table, column, _ in text_values(re.escape(secret)):
            yield f"I14: a secret stands in {table}.{column}"
        for file in evidence.log_files:
            if secret in file.read_text(errors="replace"):
                yield f"I14: a secret stands in {file.name}"


TEXT_COLUMNS = """
    SELECT relname, array_agg(attname::text ORDER BY attname) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
    AND atttypid IN ('text'::regtype, 'varchar'::regtype, 'json'::regtype, 'jsonb'::regtype) GROUP BY relname ORDER BY 1
"""


def text_values(pattern: str) -> Iterator[tuple[str, str, str]]:
    """Every value of a text or JSON column of any table that the pattern finds. PostgreSQL only."""
    with connection.cursor() as cursor:
        cursor.execute(TEXT_COLUMNS)
        cursor.execute(" UNION ALL ".join(_search(*result) for result in cursor.fetchall()), {"pattern": pattern})
        yield from cursor.fetchall()


def _search(table: str, columns: list[str]) -> str:
    values = ", ".join(f"""('{column}', "{column}"::text)""" for column in columns)
    return f"""SELECT '{table}', each.name, each.value FROM "{table}", LATERAL (VALUES {values}) AS each (name, value)
        WHERE each.value ~ %(pattern)s"""


OF_DIALOGS: tuple[Callable[[Stored], Iterator[str]], ...] = (
    state_is_that_of_its_rows,
    messages_end_once,
    turns_are_stored_once,
    only_kept_attempts_left_turns,
    epochs_grow,
    generations_have_usage_and_health,
    forced_attempts_are_bounded,
    an_old_report_counts_no_more,
    calls_have_one_result,
    events_are_gapless,
    events_tell_every_turn_and_state,
    at_most_one_question_is_open,
)
OF_EVIDENCE: tuple[Callable[[Evidence], Iterator[str]], ...] = (
    nothing_accepted_is_lost,
    discarded_output_is_nowhere,
    suspended_dialogs_ask_nothing,
    guidance_is_stored_nowhere,
    logs_hold_no_conversation,
    secrets_are_nowhere,
)
