"""The fate of the facts that a rewrite removed: in sight, one search away, or lost. It is measured on demand."""

from typing import Any

from dialogs.context.retrieval.text_index import REMOVED_UNITS
from dialogs.context.view import units_of_view
from remediation.evaluation.measures import is_found
from remediation.models import RemediationRun
from remediation.strategies.outcome import text_of
from remediation.text.coverage import Shown, missing_from, required_of

MOST_CHARS = 400_000  # of the newest removed text, in which facts are looked for
MOST_SEARCHES = 100  # only the weightiest facts out of sight are searched for


def measure(run_id: int) -> dict[str, Any]:
    """Measure the fate of facts, and store it in the row.

    ``all`` is the number of facts, ``counts`` the number with each fate, and ``unsearched`` the number of facts out of
    sight that were not searched for. ``away`` lists those that were, with their values and fate.

    A fact is an exact value in what people and the agent said (not in tool output), or a whole rule or request.
    """
    run = RemediationRun.objects.defer("removed").get(pk=run_id)
    if run.facts is None:
        run.facts = _measure(run)
        run.save(update_fields=["facts"])
    return dict(run.facts)


def _measure(run: RemediationRun) -> dict[str, Any]:
    required = list({fact.statement.text: fact for fact in required_of(_texts_of(run))}.values())
    away = missing_from(Shown(text_of(units_of_view(run.dialog_id, run.view))), required)
    away.sort(key=lambda fact: -fact.statement.worth)
    with REMOVED_UNITS.of(run.dialog_id) as index:
        found = [is_found(index, fact) for fact in away[:MOST_SEARCHES]]
    return {
        "all": len(required),
        "counts": {
            "in_sight": len(required) - len(away),
            "one_search_away": found.count(True),
            "lost": found.count(False),
        },
        "unsearched": len(away) - len(found),
        "away": [
            {
                "text": fact.statement.text,
                "role": fact.statement.role,
                "values": list(fact.values),
                "fate": "one search away" if is_found else "lost",
            }
            for fact, is_found in zip(away, found, strict=False)
        ],
    }


def _texts_of(run: RemediationRun) -> list[tuple[str, str]]:
    """Return the newest removed texts that fit, oldest first."""
    texts: list[tuple[str, str]] = []
    room = MOST_CHARS
    for role, text in run.units.exclude(role="tool").order_by("-pk").values_list("role", "text").iterator():
        room -= len(text)
        if room < 0:
            break
        texts.append((role, text))
    return texts[::-1]
