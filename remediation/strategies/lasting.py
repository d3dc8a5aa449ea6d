"""Relevance that lasts for one rewrite: each unit is judged once, by its full text and against the task as it stood."""

from collections.abc import Callable, Sequence

from remediation.context import Units

Relevance = Callable[[Sequence[str], str], Sequence[float]]


class LastingRelevance:
    """Stands in for a toolbox's ``relevance`` during a chain, whose later strategies see shortened texts.

    Embedding is the costliest step of a rewrite, and a shorter text is no better witness of what a unit is about.
    """

    def __init__(self, relevance: Relevance, task: str) -> None:
        self._relevance, self._task = relevance, task
        self._known: dict[str, float] = {}

    def __call__(self, texts: Sequence[str], query: str) -> Sequence[float]:
        missing = list(dict.fromkeys(text for text in texts if text not in self._known))
        if missing:
            self._known |= dict(zip(missing, self._relevance(missing, self._task or query), strict=True))
        return [self._known[text] for text in texts]

    def inherit(self, before: Units, after: Units) -> None:
        """A unit that was shortened keeps the score of its longer text."""
        former = {unit.id: unit.text for unit in before}
        for unit in after:
            text = former.get(unit.id)
            if text is not None and text in self._known:
                self._known.setdefault(unit.text, self._known[text])
