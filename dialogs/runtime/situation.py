"""Gathers, from rows, what the policies may know before they decide."""

import functools
from dataclasses import dataclass, field, replace
from operator import attrgetter

from dialogs.context.client import params_of
from dialogs.context.config import prompts_folder
from dialogs.context.limits import as_served, judgement_of, model_of, policy_for, thresholds_of_model
from dialogs.context.retrieval import recall
from dialogs.context.retrieval.recall import NOTHING, Recall
from dialogs.context.sizes import Sizes, StreamWatch, parts_tokens, sizes_of
from dialogs.context.spending import economy_of, spending_of
from dialogs.context.view import View, view_of
from dialogs.models import Agent, Dialog, Generation
from dialogs.runtime import overflow_history
from dialogs.runtime.refused_clear import refused_clear
from dialogs.runtime.repeats import OUTPUT
from dialogs.tools.registry import offered_to
from dialogs.tools.tool import Tool
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.messages import chars_of
from dominds.llm.models.params import most_output
from dominds.llm.models.room import output_room
from health.levels import Level, Thresholds
from health.models import HealthSnapshot
from remediation.context import Context, Economy, UnitRole
from remediation.decisions import Proceed
from remediation.loops import ENDLESS_CALLS, NO_LOOP, NUDGE_REPEATS, Loop, LoopAction, nudge
from remediation.policies import while_streaming
from remediation.policies.policy import Policy, limit_for_trigger
from remediation.policies.registry import with_verb
from remediation.tokens.calibration import Counted

BEFORE_CRITICAL_PERCENT = 95  # of the critical threshold, where a policy acts at the latest: estimates err by a little
# Of the critical threshold: with less in sight a rewrite would not answer a critical report.
WORTH_REWRITING_PERCENT = 50
SHORT_ANSWER = 4_000  # tokens: a re-entry package, a summary
LEAST_CHARS_PER_TOKEN = 1.5
FRAME_TOKENS = 8_000  # instructions, tools and reminders, at most in general
_parts = attrgetter("parts")


@dataclass(frozen=True)
class Situation:
    """One dialog before its next generation: what is seen, by which model, under which policy.

    Sizes are counted only when a policy asks: a dialog whose policy counts nothing is never touched by estimates.
    """

    dialog: Dialog
    model: ModelInfo
    thresholds: Thresholds
    policy: Policy
    tools: dict[str, Tool]
    view: View
    _sizes: dict[str, Sizes] = field(default_factory=dict)

    @property
    def lacks_limit(self) -> bool:
        """Without a window that is known, no model of such a kind can be called."""
        return self.model.kind.needs_limit and self.thresholds.context_limit is None

    @functools.cached_property
    def most_tokens(self) -> float:
        """What the view's messages take at most, without counting them."""
        return self.view.chars / LEAST_CHARS_PER_TOKEN + parts_tokens(self.view.messages, self.model)

    @functools.cached_property
    def lacks_room(self) -> bool:
        """Whether what is new since the last report leaves no room for a re-entry package: the clear comes first then,
        and not a request that is refused or that nothing can follow. Never twice: what a fresh round begins with is
        sent."""
        dialog, window = self.dialog, self.thresholds.context_limit
        if (
            window is None
            or self.policy.counts
            or dialog.agent.proxy
            or dialog.report != Dialog.Report.REPORTED
            or dialog.clear_unproven
        ):
            return False
        room = max(self.thresholds.most_before_package(window), self.thresholds.critical_max or 0)
        if self.most_tokens + FRAME_TOKENS <= room:
            return False
        sizes = self.sizes_for(self.policy)
        return sizes.source == "calibrated" and sizes.prompt > room

    @property
    def to_clear(self) -> "Situation":
        """For a forced clear: without the message that waits, where a package would not fit beside it.
        It is answered in the fresh round."""
        newest = self.view.units[-1]
        if not self.lacks_room or newest.role is not UnitRole.USER or len(self.view.units) == 1:
            return self
        view = replace(
            self.view,
            units=self.view.units[:-1],
            messages=self.view.messages[: -len(newest.messages)],
            chars=self.view.chars - chars_of(newest.messages),
        )
        return replace(self, view=view, _sizes={})

    @functools.cached_property
    def watched(self) -> overflow_history.RecentContext | None:
        return overflow_history.recent_context(self.dialog, self.view) if self.policy.watches_past else None

    @functools.cached_property
    def loop(self) -> Loop:
        """Of any agent of ours. Looked up where its policy watches, or the message has had as many
        calls as a loop takes."""
        if self.dialog.agent.proxy:
            return NO_LOOP
        if self.watched:
            return self.watched.loop
        is_possible = self.dialog.generations_for_message >= NUDGE_REPEATS
        return overflow_history.loop_in(self.dialog, self.view) if is_possible else NO_LOOP

    @property
    def nudge(self) -> str:
        """What an agent that repeats itself is told, before anything is done about it."""
        return nudge(self.loop, prompts_folder()) if self.loop.calls else ""

    @functools.cached_property
    def context(self) -> Context:
        dialog = self.dialog
        asked = with_verb(dialog.requested_rewrite)
        sizes = self.sizes_for(asked or self.policy) if asked or self.policy.counts else None
        watched, is_long = self.watched, dialog.generations_for_message >= ENDLESS_CALLS
        return Context(
            level=judgement_of(dialog, self.thresholds).level,
            est_tokens=sizes.request if sizes else 0,
            est_prompt=sizes.prompt if sizes else 0,
            limit=sizes.limit if sizes else None,
            standing_tokens=sizes.standing if sizes else 0,
            warning_threshold=sizes.config.warning_threshold if sizes else 0.8,
            changed=dialog.changed_since_rewrite,
            overflowed=dialog.overflowed or self.lacks_room,
            restarts=dialog.restarts,
            failed_clears=dialog.failed_clears,
            refused_clear=refused_clear(dialog, self.model, self.thresholds),
            clear_due=clear_due(dialog, self.thresholds),
            kept_since_guidance=dialog.kept_since_guidance,
            guided_generations=dialog.guided_generations,
            cadence=self.model.cadence,
            is_proxy=dialog.agent.proxy,
            countdown=dialog.agent.critical_policy == Agent.CriticalPolicy.COUNTDOWN,
            over_hits_last_hour=watched.over_hits if watched else 0,
            loop_detected=bool(watched and watched.loop.action is LoopAction.RECOVER),
            endless_loop=self.loop.failure if self.loop.is_endless and is_long else "",
            interrupted=self.view.interrupted,
            spending=spending_of(dialog),
            poor_rewrites=self.poor_rewrites,
            economy=self.economy,
            prompts=prompts_folder(),
            requested=dialog.requested_rewrite,
        )

    @functools.cached_property
    def poor_rewrites(self) -> bool:
        """Looked up where a view that was rewritten may have to be rewritten again soon."""
        if not self.policy.counts or not self.view.base_position:
            return False
        sizes = self.sizes_for(self.policy)
        is_near = sizes.limit is not None and sizes.request * 2 > sizes.limit
        return is_near and overflow_history.were_poor(self.dialog)

    @functools.cached_property
    def economy(self) -> Economy | None:
        """Looked up where the policy may want a rewrite soon: with its limit more than half full."""
        if not self.policy.counts:
            return None
        sizes = self.sizes_for(self.policy)
        is_near = sizes.limit is not None and sizes.request * 2 > sizes.limit
        return economy_of(self.dialog, self.model, sizes.prompt, self.view.base) if is_near else None

    def sizes_for(self, policy: Policy) -> Sizes:
        """The view counted under one policy; counted once, however often it is asked for."""
        if policy.name not in self._sizes:
            specs = [tool.spec for tool in self.tools.values()]
            self._sizes[policy.name] = sizes_of(
                self.dialog, self.view.units, self.model, self.thresholds, specs, policy
            )
        return self._sizes[policy.name]

    @functools.cached_property
    def recalls(self) -> bool:
        return recall.is_on(self.dialog, self.view)

    @functools.cached_property
    def context_before_generation(self) -> Context:
        """With a limit that leaves recalled text its room and lets a policy act before the level is critical, where
        that is the only reason to rewrite: a view that was rewritten for this message stands, and recall has what is
        left."""
        context = self.context
        is_needed = context.requested or context.overflowed or context.interrupted or context.restarts
        if context.limit is None or is_needed:
            return context
        limits = [context.limit]
        if self.recalls:
            limits.append(recall.limit_beside(context.limit))
        if critical := self.thresholds.effective_critical_max:  # of the prompt, without the room for an answer
            room = context.est_tokens - context.est_prompt
            limits.append(limit_for_trigger(critical * BEFORE_CRITICAL_PERCENT // 100 + room))
            if context.level is Level.CRITICAL and context.est_prompt * 100 > critical * WORTH_REWRITING_PERCENT:
                limits.append(limit_for_trigger(context.est_tokens - 1))  # a rewrite goes before a clear
        return replace(context, limit=min(limits))

    def recalled(self) -> Recall:
        """What the next request brings back. One whose answer filled the window,
        or that was refused, is not made longer."""
        if not self.recalls or self.dialog.overflowed or self.view.interrupted or self.dialog.restarts > 1:
            return NOTHING
        return recall.recalled_for(self.dialog, self.view, self.sizes_for(self.policy), self.model, self.thresholds)

    def counted(self, recalled: Recall = NOTHING) -> Counted | None:
        """The raw counts that the next report calibrates, where the request was counted."""
        if not self.policy.counts and self.policy.name not in self._sizes:
            return None
        counted = self.sizes_for(self.policy).counted
        return replace(counted, text=counted.text + recalled.raw_tokens)

    def output_for(self, plan: Proceed, recalled: Recall = NOTHING) -> int | None:
        """Tokens of output to ask for; None leaves it to the provider. What a package needs is asked for a forced
        clear, whatever the agent's settings say of answers.

        Only a request that may be near the end of the window is counted for it.
        """
        settings, asked = self.dialog.agent.model_params, params_of(self.dialog)
        wanted = SHORT_ANSWER if plan.clear_only else most_output(settings, asked)
        most = output_room(self.model, None, window=None, wanted=wanted)
        window = self.thresholds.context_limit
        less = self.dialog.repeats.get(OUTPUT)
        if most is None or window is None:
            return less or most
        added = (len(recalled.text) + len(plan.guidance)) / LEAST_CHARS_PER_TOKEN
        if self.most_tokens + added + FRAME_TOKENS + most > window:
            sizes = self.sizes_for(self.policy)
            prompt = sizes.prompt + recalled.est_tokens + sizes.count_text(plan.guidance)
            room = output_room(self.model, prompt, window=window, wanted=most, margin=sizes.margin(prompt))
            most = min(most, room or most)  # a request may ask for less than there is always room for
        return min(less, most or less) if less else most

    def stream_watch(self, recalled: Recall = NOTHING) -> StreamWatch | None:
        if not self.policy.while_streaming:
            return None
        sizes = self.sizes_for(self.policy)
        return StreamWatch(sizes, lambda used, limit: while_streaming(self.policy, used, limit), recalled.est_tokens)


def situation_of(dialog: Dialog, view: View | None = None) -> Situation:
    """Read it fresh, or with the ``view`` of a dialog that is not stored yet.
    Raises ``UnknownModel`` when the catalog no longer has the dialog's model."""
    model, view = model_of(dialog), view or view_of(dialog)
    if any(map(_parts, view.messages)):  # of a thousand, often
        model = as_served(model)
    return Situation(
        dialog=dialog,
        model=model,
        thresholds=thresholds_of_model(model),
        policy=policy_for(dialog, model.kind.family).policy,
        tools=offered_to(dialog),
        view=view,
    )


def clear_due(dialog: Dialog, thresholds: Thresholds) -> bool:
    """Whether an episode of forced clears is open: the dialog's newest call was such an attempt, of this round, of
    this model and under these limits. A level that is unknown or has fallen meanwhile does not close it."""
    if not dialog.clear_episode:
        return False
    calls = dialog.generations.filter(purpose__in=[Generation.Purpose.REPLY, Generation.Purpose.FORCED_CLEAR])
    over = calls.exclude(outcome__in=[Generation.Outcome.RUNNING, Generation.Outcome.CRASHED])
    newest = over.select_related("snapshot").order_by("-id").first()
    if newest is None or newest.purpose != Generation.Purpose.FORCED_CLEAR:
        return False
    snapshot: HealthSnapshot | None = getattr(newest, "snapshot", None)
    return (
        snapshot is not None
        and newest.round_number == dialog.round_number
        and (newest.provider, newest.model) == (dialog.provider_id, dialog.model_id)
        and snapshot.model_context_limit == thresholds.context_limit
        and snapshot.critical_max_tokens == thresholds.effective_critical_max
    )
