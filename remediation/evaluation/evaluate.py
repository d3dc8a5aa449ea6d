"""Evaluation of all dialogs under all policies."""

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from remediation.budget import RECALL_SHARE
from remediation.context import Toolbox
from remediation.evaluation.dialogs import Dialog, units_of
from remediation.evaluation.formats import load
from remediation.evaluation.measures import State, answerable, run, search_probes
from remediation.evaluation.policies import POLICIES, Policy, toolbox_of
from remediation.evaluation.report import Report, Result, Searched, result_of
from remediation.evaluation.simulation import Embed, Recalling, Setup, embed_missing, entries_of
from remediation.recall.index import Index
from remediation.similarity.embeddings import CachingEmbedder, Embedder, LexicalEmbedder, load_minilm
from remediation.similarity.minilm import Array
from remediation.tokens.counting import Counter, counter_for

DEFAULT_BUDGETS = (5_000,)  # tokens
DEFAULT_MODEL = "gpt-4"  # tokens are counted by this model's vocabulary


def evaluate(
    paths: Iterable[Path],
    budgets: Sequence[int] = DEFAULT_BUDGETS,
    policies: Sequence[Policy] = tuple(POLICIES.values()),
    recall_shares: Sequence[float] = (0.0, RECALL_SHARE),
    model_name: str = DEFAULT_MODEL,
    by_meaning: bool = False,
    in_window: bool = False,
) -> Report:
    """Evaluate all dialogs under all policies. Raises ``UnknownFormat`` for a path without dialogs.

    With ``by_meaning``, recall compares meaning as well as words, as workers do where MiniLM is installed.
    With ``in_window``, a budget is the window of a model, in which the answer has to fit as well.
    """
    by_format: dict[str, list[Dialog]] = defaultdict(list)
    for dialog in load(paths):
        by_format[dialog.format].append(dialog)
    counter = counter_for(model_name)
    minilm = load_minilm() if by_meaning else None
    embed = _remember_vectors(minilm) if minilm else None
    setups = [
        Setup(policy, budget, Recalling(share, embed=embed), counter, _toolbox(counter), budget if in_window else None)
        for budget in budgets
        for policy in policies
        for share in recall_shares
        if policy.rewrite or not share  # without rewrites nothing goes out of sight, so nothing is recalled
    ]
    return Report(
        results=tuple(_result(form, dialogs, setup) for form, dialogs in by_format.items() for setup in setups),
        searches=tuple(
            _search(form, dialogs, counter, embed)
            for form, dialogs in by_format.items()
            if any(dialog.probes for dialog in dialogs)
        ),
    )


def _remember_vectors(embedder: Embedder) -> Embed:
    """Embed each text once, however many settings ask for it."""
    known: dict[str, Array] = {}

    def embed(texts: Sequence[str]) -> Array:
        if missing := [text for text in dict.fromkeys(texts) if text not in known]:
            known.update(zip(missing, embedder.embed(missing), strict=True))
        return np.stack([known[text] for text in texts])

    return embed


def _toolbox(counter: Counter) -> Toolbox:
    return toolbox_of(counter, CachingEmbedder(LexicalEmbedder(), time.monotonic))


def _result(form: str, dialogs: Sequence[Dialog], setup: Setup) -> Result:
    runs = [run(dialog, setup) for dialog in dialogs]
    return result_of(form, setup.policy.name, setup.budget, setup.recalling.share, runs)


def _search(form: str, dialogs: Sequence[Dialog], counter: Counter, embed: Embed | None) -> Searched:
    asked = answered = unanswerable = 0
    for dialog in dialogs:
        units = units_of(dialog, counter.count_messages)
        index = Index(passage for unit in units for passage in entries_of(unit, counter))
        if embed:
            embed_missing(index, embed)
        fates = list(search_probes(dialog, index, units, embed))
        asked += len(fates)
        answered += sum(fate.state is State.ONE_SEARCH_AWAY for fate in fates)
        unanswerable += len(dialog.probes) - len(answerable(dialog))
    return Searched(form, asked, answered, unanswerable)
