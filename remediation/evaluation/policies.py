"""Policies under comparison: the product's own, called as the runtime calls them, and the baselines."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from remediation.budget import TRIGGER_SHARE
from remediation.config import ContextConfig
from remediation.context import Toolbox, Units, write_nothing
from remediation.evaluation import baselines
from remediation.policies import autocompaction, breaking, fresh_start, policy, retention, summarize
from remediation.policies.policy import RewriteTask
from remediation.policies.rewriting import rewrite_by
from remediation.similarity.embeddings import Embedder, relevance, similarity
from remediation.tokens.counting import Counter

Rewrite = Callable[[RewriteTask, Toolbox], Units]


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy under comparison. ``rewrite`` returns the new view, or the same units if it cannot make it smaller.

    It is called when a request exceeds ``trigger_share`` of its limit, and aims at ``target_percent``. With
    ``reserves_answer`` the room that is kept for the answer counts as taken.
    """

    name: str
    rewrite: Rewrite | None  # None: never acts
    trigger_share: float = TRIGGER_SHARE
    target_percent: int = 50
    reserves_answer: bool = False


def of_product(chosen: policy.Policy, config: ContextConfig) -> Policy:
    """Return a policy of the product as a policy under comparison."""

    def rewrite(task: RewriteTask, toolbox: Toolbox) -> Units:
        return rewrite_by(chosen, task, toolbox).units

    share = chosen.trigger_share(config) if chosen.trigger_share else TRIGGER_SHARE
    return Policy(
        chosen.name, rewrite if chosen.rewrite else None, share, chosen.target_percent, chosen.reserves_answer
    )


def toolbox_of(counter: Counter, embedder: Embedder) -> Toolbox:
    """Make a toolbox without a model: rules choose the text of hand-offs."""
    return Toolbox(
        count=counter.count_messages,
        summarise=write_nothing,
        relevance=lambda texts, query: relevance(texts, query, embedder),
        similarity=lambda a, b: similarity(a, b, embedder),
        clock=lambda: time.perf_counter() * 1000,
        report=lambda phase, current, limit: None,
    )


POLICIES = {
    one.name: one
    for one in (
        Policy("none", None),
        Policy("window", baselines.window),
        Policy("masking", baselines.masking),
        Policy("langchain", baselines.langchain),
        Policy("inspect_trim", baselines.inspect_trim),
        Policy("inspect_edit", baselines.inspect_edit),
        Policy("codex", baselines.codex),
        Policy("cliff", baselines.cliff),
        *(
            of_product(module.POLICY, ContextConfig())
            for module in (breaking, retention, autocompaction, summarize, fresh_start)
        ),
    )
}
