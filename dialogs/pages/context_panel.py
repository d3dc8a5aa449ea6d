"""The context panel, and the words for a rewrite in the transcript. Every number here is an estimate."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.context.images import unsent
from dialogs.context.limits import policy_of
from dialogs.context.view import standing_run
from dialogs.models import Dialog
from dialogs.queries.moments import est_sizes
from dialogs.runtime.materials import Materials, materials_of
from dialogs.runtime.next_call import next_prompt
from dialogs.runtime.policy_context import context_of, economy_near_limit
from dominds.llm.catalog.catalog import UnknownModel
from remediation.decisions import UNDO_CLEAR, Rewrite
from remediation.economy import MOST_WAITING_PERCENT, Balance, balance_of, waits
from remediation.models import RemediationRun, RemovedUnit
from remediation.policies.fresh_start import POLICY as FRESH_START
from remediation.policies.registry import title_of
from remediation.spending import in_usd
from remediation.strategies.reasons import name_of
from remediation.strategies.stand_ins import HANDOVER_CLOSING, without_heading

WARNING_PERCENT = 80


@dataclass(frozen=True, slots=True)
class Panel:
    """The panel. ``utilisation`` is a percentage of ``limit``; both are ``None`` if the limit is unknown."""

    messages: int
    est_tokens: int
    limit: int | None
    utilisation: float | None
    info: str
    window: int | None  # the model's window, on which the percentage of the health chip is based
    notes: tuple[str, ...]  # why a rewrite is put off, and which images the model does not get
    problem: str  # why the policy in force is not the one that the agent names, or empty
    fixed: int  # tokens of instructions, tools and reminders, which no rewrite takes away

    @property
    def warns(self) -> bool:
        return self.utilisation is not None and self.utilisation > WARNING_PERCENT

    @property
    def is_mostly_fixed(self) -> bool:
        """Check whether half of the limit is taken by parts of every request, so that a rewrite cannot help much."""
        return self.limit is not None and self.fixed * 2 > self.limit

    @property
    def state(self) -> str:
        return "warning" if self.warns else ("active" if self.messages else "idle")


def panel_of(dialog: Dialog) -> Panel | None:
    """Build the panel, or return ``None`` if the catalog does not know the dialog's model."""
    try:
        materials = materials_of(dialog)
    except UnknownModel:
        return None
    (served, view, _tools, view_sizes), policy = materials, materials.served.policy
    sizes = view_sizes.own
    limit, tokens = sizes.limit, next_prompt(dialog, materials, sizes)
    return Panel(
        messages=len(sizes.units),
        est_tokens=tokens,
        limit=limit,
        utilisation=tokens * 100 / limit if limit else None,
        info=policy.automatic or policy.sentence,
        window=served.thresholds.context_limit,
        notes=tuple(filter(None, (_waiting(dialog, materials), unsent(view.messages, served.model)))),
        problem=policy_of(dialog).problem,
        fixed=sizes.budget.frame,
    )


@dataclass(frozen=True, slots=True)
class RunLine:
    """A rewrite as the transcript and the archive show it."""

    run: RemediationRun
    may_undo: bool = False

    @property
    def title(self) -> str:
        return title_of(FRESH_START.name if self.is_handover else self.run.policy)

    @property
    def undoes_clear(self) -> bool:
        return self.run.policy == UNDO_CLEAR

    @property
    def is_handover(self) -> bool:
        """Check whether the agent went on from a handover, under any policy."""
        return self.run.recovered and HANDOVER_CLOSING in self.run.summary

    @property
    def sizes(self) -> str:
        return est_sizes(self.run.est_before, self.run.est_after)

    @property
    def economy(self) -> str:
        """Return what the rewrite saves and costs, or an empty text if no price of a cache is known."""
        saving, reread = self.run.saving_usd, self.run.reread_usd
        if saving is None or reread is None:
            return ""
        saved = self.run.est_before - self.run.est_after
        return _economy(Balance(saved, saving, reread))

    @property
    def summary(self) -> str:
        """Return the text that replaces the removed units, without the heading that the model sees."""
        return without_heading(self.run.summary).strip()

    @property
    def strategies(self) -> list[str]:
        """Return the name of each strategy with the number of its runs, and the recovery if nothing else helped."""
        ran = Counter(name for name, _sizes, _note in self.steps)
        names = [_(name_of(name)) + (f" ×{times}" if times > 1 else "") for name, times in ran.items()]
        return [*names, self.recovery] if self.recovery else names

    @property
    def steps(self) -> list[tuple[str, str, str]]:
        """Return the name of each strategy that ran, the sizes of the messages alone in words, and what it did."""
        return [
            (step["strategy"], est_sizes(step["est_before"], step["est_after"]), step["note"])
            for step in self.run.steps
        ]

    @property
    def recovery(self) -> str:
        """Return what was done after no strategy helped enough, or an empty text."""
        if not self.run.recovered:
            return ""
        return _("fresh start") if self.is_handover else _("truncation")

    @property
    def removed(self) -> int:
        """Return how many units were removed, as counted by ``run_lines``, which does not load the units."""
        return int(getattr(self.run, "units_removed", 0))


def _economy(balance: Balance) -> str:
    requests = balance.requests_to_pay
    pays = _("does not pay")
    if requests is not None:
        pays = ngettext("pays after {number:,} request", "pays after {number:,} requests", requests).format(
            number=requests
        )
    return _(
        "Saves est. {tokens:,} cached tokens ({saving}) in each later request; reading the new beginning once without "
        "the cache costs est. {reread}: {pays}."
    ).format(tokens=balance.saved_tokens, saving=in_usd(balance.saving), reread=in_usd(balance.reread), pays=pays)


def _waiting(dialog: Dialog, materials: Materials) -> str:
    """Return why a rewrite that is due by size has not come yet, or an empty text if none is due."""
    served, view, _tools, sizes = materials
    economy, policy = economy_near_limit(dialog, served, view, sizes), served.policy
    if economy is None or policy.before_generation is None:
        return ""
    context = context_of(dialog, served, view, sizes)
    due = policy.before_generation(context)
    if not isinstance(due, Rewrite) or not waits(context, due, policy.name):
        return ""
    balance = balance_of(context.budget.prompt, due.target_tokens, economy.price)
    waiting = _("The next rewrite waits up to {percent} % of the limit, since it would cost more than it saves.")
    return f"{waiting.format(percent=MOST_WAITING_PERCENT)} {_economy(balance)}"


def run_lines(dialog: Dialog, newest: int | None = None, **chosen: Any) -> list[RunLine]:
    """Return a dialog's rewrites, oldest first, or only the ``newest``. ``chosen`` are further filters. Only the newest
    rewrite in force can be undone, and only while nothing runs.

    Columns that grow with the conversation are left out, since reading a rewrite of 5,000 units takes a tenth of a
    second.
    """
    standing = standing_run(dialog)
    free = dialog.state in ("idle", "failed")
    units = RemovedUnit.objects.filter(run=OuterRef("pk")).order_by().values("run").annotate(number=Count("pk"))
    runs = RemediationRun.objects.filter(dialog=dialog, **chosen).order_by("-pk")
    runs = runs.annotate(units_removed=Coalesce(Subquery(units.values("number")), 0))
    return [
        RunLine(run, may_undo=free and standing is not None and standing.pk == run.pk)
        for run in reversed(runs.defer("view", "removed", "ledger", "reward_record")[:newest])
    ]
