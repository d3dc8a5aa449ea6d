"""Evaluation of an agent's settings, present and proposed, on its newest dialogs.

No model is asked: summaries are made of selected sentences. Nothing is changed.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import QuerySet

from dialogs.context.config import current_config
from dialogs.context.limits import model_of, policy_of, thresholds_of_model
from dialogs.context.sizes import facts_of
from dialogs.errors import UNREADABLE
from dialogs.models import Agent, Turn
from dialogs.models import Dialog as Row
from remediation.budget import RECALL_SHARE
from remediation.config import ContextConfig
from remediation.evaluation import policies as evaluated
from remediation.evaluation.dialogs import Dialog
from remediation.evaluation.formats import export
from remediation.evaluation.measures import FACTS, NEEDED_LATER, run
from remediation.evaluation.report import Result, Tally, result_of
from remediation.evaluation.simulation import Recalling, Setup
from remediation.similarity.embeddings import CachingEmbedder, LexicalEmbedder
from remediation.tokens.counting import counter_for

MOST_DIALOGS, MOST_TURNS = 20, 600  # turns of all together, which take some seconds of a core
PREVIEW_TURNS = 120  # for the preview while somebody chooses settings: some tenths of a second
UNLIMITED = 1_000_000_000  # tokens; stands for an unknown limit
COLUMNS = ("seq", "role", "text", "tool_calls", "tool_call_id", "status", "position")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one set of settings over all dialogs."""

    policy: str
    problem: str
    limit: int | None
    recall: bool
    result: Result

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield the figures with their names for people."""
        result, facts = self.result, self.result.tallies.get(FACTS, Tally())
        needed = self.result.tallies.get(NEEDED_LATER, Tally())
        yield "policy", f"{self.policy}: {self.problem}" if self.problem else self.policy
        yield "limit, tokens", f"{self.limit:,}" if self.limit else "unknown"
        yield "recall", "on" if self.recall else "off"
        yield "requests", f"{result.requests:,}"
        yield "tokens a request, est.", f"{result.tokens_sent / max(1, result.requests):,.0f}"
        yield "cache-readable", f"{100 * result.cached_share:.0f} %"
        yield "requests over the limit", f"{result.over_budget:,}"
        yield "rewrites", f"{result.rewrites:,}"
        yield "facts at the end", _in_words(facts)
        yield "values of calls that were said before", _in_words(needed)


def _in_words(tally: Tally) -> str:
    away = f"{tally.in_sight:,} in sight, {tally.one_search_away:,} one search away, {tally.lost:,} lost"
    return f"{tally.needed:,}: {away}" if tally.needed else "none"


@dataclass(frozen=True, slots=True)
class DryRun:
    dialogs: int
    turns: int
    before: Outcome
    after: Outcome

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        pairs = zip(self.before.rows(), self.after.rows(), strict=True)
        return [(name, before, after) for (name, before), (_, after) in pairs]


def dry_run(
    agent: Agent, proposed: Agent, config: ContextConfig | None = None, dialog_id: UUID | None = None
) -> DryRun:
    """Evaluate an agent and ``proposed``, the same agent with other settings, which is not saved. Raises
    ``UnknownModel``.

    ``proposed`` is tried under ``config``, if it is given, instead of the configuration in force. ``dialog_id`` names
    one dialog instead of the newest ones.
    """
    in_force = current_config()
    dialogs = list(_newest_dialogs(agent.dialogs.filter(pk=dialog_id) if dialog_id else agent.dialogs.all()))
    return DryRun(
        len(dialogs),
        sum(len(dialog.turns) for dialog in dialogs),
        _outcome(agent, dialogs, in_force),
        _outcome(proposed, dialogs, config or in_force),
    )


def preview(agent: Agent | None, proposed: Agent) -> DryRun:
    """Evaluate fewer turns, for a page on which settings are being chosen. Raises ``UnknownModel``.

    An agent without dialogs is tried on the newest dialogs of all agents.
    """
    own = agent.dialogs.filter(last_turn_seq__gt=0) if agent else Row.objects.none()
    dialogs = list(_newest_dialogs(own if own.exists() else Row.objects.all(), PREVIEW_TURNS))
    after = _outcome(proposed, dialogs, current_config())
    before = after if agent is None else _outcome(agent, dialogs, current_config())
    return DryRun(len(dialogs), sum(len(dialog.turns) for dialog in dialogs), before, after)


def _newest_dialogs(rows_of_dialogs: QuerySet[Row], room: int = MOST_TURNS) -> Iterator[Dialog]:
    """Yield dialogs until they have ``room`` turns in all. The last one may have only its newest turns."""
    newest = rows_of_dialogs.filter(last_turn_seq__gt=0).order_by("-active_at", "pk")
    for dialog_id, instructions in newest.values_list("pk", "agent__instructions")[:MOST_DIALOGS]:
        turns = Turn.objects.filter(dialog=dialog_id, position__isnull=False).order_by("-position")
        rows = list(turns.values(*COLUMNS)[:room])
        room -= len(rows)
        with suppress(*UNREADABLE):  # a damaged turn
            for dialog in export.read({"turns": rows}, str(dialog_id)):
                yield replace(dialog, instructions=instructions)
        if room <= 0:
            return


def _outcome(agent: Agent, dialogs: list[Dialog], config: ContextConfig) -> Outcome:
    model, choice = model_of(agent), policy_of(agent)
    facts = replace(facts_of(agent, model, thresholds_of_model(model)), read_config=lambda: config)
    limit = choice.policy.limit(facts)
    counter = counter_for(model.model_id, choice.policy.tokenizer(facts))
    toolbox = evaluated.toolbox_of(counter, CachingEmbedder(LexicalEmbedder(), time.monotonic))
    share = RECALL_SHARE if agent.recall and choice.policy.rewrite else 0.0
    policy = evaluated.of_product(choice.policy, config)
    setup = Setup(policy, limit or UNLIMITED, Recalling(share), counter, toolbox, facts.window, config)
    runs = [run(dialog, setup, facts=True) for dialog in dialogs]
    result = result_of("history", choice.policy.name, setup.budget, share, runs)
    return Outcome(choice.policy.label, choice.problem, limit, agent.recall, result)
