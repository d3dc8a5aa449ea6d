"""A dialog's context as policies see it, gathered from rows before they decide."""

from dialogs.context.config import prompts_folder
from dialogs.context.limits import judgement_of
from dialogs.context.served import Served
from dialogs.context.sizes import Sizes, too_large_after_all
from dialogs.context.spending import economy_of, spending_of
from dialogs.context.view import View
from dialogs.context.view_sizes import ViewSizes
from dialogs.models import Agent, Dialog, Generation
from dialogs.runtime import overflow_history
from dialogs.runtime.refused_clear import refused_clear
from health.levels import Level, Thresholds
from health.models import HealthSnapshot
from remediation.context import NO_BUDGET, Context, Economy
from remediation.loops import ENDLESS_CALLS, NO_LOOP, NUDGE_REPEATS, Loop, LoopAction, nudge
from remediation.policies.registry import with_verb


def context_of(dialog: Dialog, served: Served, view: View, sizes: ViewSizes) -> Context:
    requested = with_verb(dialog.requested_rewrite) if dialog.requested_rewrite else None
    counting = requested or (served.policy if served.policy.counts else None)
    counted = sizes.under(counting) if counting else None
    too_large = too_large_after_all(sizes.own, served.policy) if dialog.overflowed else ""
    watched = overflow_history.recent_context(dialog, view) if served.policy.watches_past else None
    loop = _loop_of(dialog, view, watched)
    endless, near = _endless_loop(dialog), _near_limit(served, sizes)
    return Context(
        level=_level_of(dialog, served.thresholds),
        budget=counted.budget if counted else NO_BUDGET,
        changed=dialog.changed_since_rewrite,
        overflowed=dialog.overflowed,
        too_large=too_large,
        restarts=dialog.restarts,
        failed_clears=dialog.failed_clears,
        refused_clear=refused_clear(dialog, served.model, served.thresholds),
        clear_due=clear_due(dialog, served.thresholds),
        kept_since_guidance=dialog.kept_since_guidance,
        guided_generations=dialog.guided_generations,
        cadence=served.model.cadence,
        is_proxy=not dialog.agent.kind.is_guided,
        countdown=dialog.agent.critical_policy == Agent.CriticalPolicy.COUNTDOWN,
        over_hits_last_hour=watched.over_hits if watched else 0,
        loop_detected=bool(watched and watched.loop.action is LoopAction.RECOVER and not endless),
        nudge=nudge(loop, prompts_folder()) if loop.calls else "",
        endless_loop=endless,
        interrupted=view.interrupted,
        spending=spending_of(dialog),
        last_rewrite=overflow_history.last_rewrite(dialog) if near else None,
        economy=economy_near_limit(dialog, served, view, sizes),
        prompts=prompts_folder(),
        requested=dialog.requested_rewrite,
    )


def _level_of(dialog: Dialog, thresholds: Thresholds) -> Level:
    """Return the level of the last report. It counts as healthy if only recalled text makes it critical."""
    level = judgement_of(dialog, thresholds).level
    if level is Level.CRITICAL and overflow_history.is_red_by_recall(dialog, thresholds):
        return Level.HEALTHY
    return level


def _loop_of(dialog: Dialog, view: View, watched: overflow_history.RecentContext | None) -> Loop:
    """Return the loop that the agent's calls are in, if it is an agent that gets nudges.

    If its policy watches for no loops, one is looked for once the message has had as many calls as a nudge takes.
    """
    if not dialog.agent.kind.is_guided:
        return NO_LOOP
    if watched:
        return watched.loop
    is_long = dialog.generations_for_message >= NUDGE_REPEATS
    return overflow_history.loop_in(dialog, view.base_position) if is_long else NO_LOOP


def _endless_loop(dialog: Dialog) -> str:
    """Return why the message has to end if its newest calls are one long loop, even across rewrites; else empty."""
    if dialog.generations_for_message < ENDLESS_CALLS or not dialog.agent.kind.is_guided:
        return ""
    loop = overflow_history.loop_in(dialog, 0)
    return loop.failure if loop.is_endless else ""


def economy_near_limit(dialog: Dialog, served: Served, view: View, sizes: ViewSizes) -> Economy | None:
    """Look up the economy of a rewrite if the policy may want one soon."""
    near = _near_limit(served, sizes)
    return economy_of(dialog, served.model, near.prompt, view.base) if near else None


def _near_limit(served: Served, sizes: ViewSizes) -> Sizes | None:
    """Return the sizes if the policy may want a rewrite soon, because its limit is more than half full."""
    own = sizes.own if served.policy.counts else None
    return own if own and own.budget.is_near_trigger else None


def clear_due(dialog: Dialog, thresholds: Thresholds) -> bool:
    """Check whether an episode of forced clears is open.

    It is open while the dialog's newest call was a forced clear in this round, by this model and under these limits.
    A level that is unknown, or has fallen meanwhile, does not close it.
    """
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
