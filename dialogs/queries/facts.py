"""The fate of the facts that a rewrite removed: in sight, one search away, or lost. It is measured on demand."""

from typing import Any

from dialogs.context.retrieval.text_index import REMOVED_UNITS
from dialogs.context.view import units_of_view
from remediation.evaluation.measures import is_found
from remediation.models import RemediationRun
from remediation.strategies.outcome import text_of
from remediation.text.coverage import Shown, missing_from, required_of

MOST_CHARS = 400_000  # the newest text of people and the agent, in which facts are looked for
MOST_SEARCHES = 100  # the weightiest facts out of sight, each of which is searched for


def measure(run_id: int) -> dict[str, Any]:
    """Measure the fate of facts and store it in the row: ``all`` is their number, ``counts`` their fates,
    ``unsearched`` the number beyond those that are searched for, and ``away`` lists the facts out of sight with values
    and fate.

    A fact is an exact value in the words of people and the agent, without tool output, or a whole rule or request.
    """
    run = RemediationRun.objects.defer("removed").get(pk=run_id)
    if run.facts is None:
        run.facts = _measure(run)
        run.save(update_fields=["facts"])
    return dict(run.facts)


def _measure(run: RemediationRun) -> dict[str, Any]:
    required = list({one.statement.text: one for one in required_of(_texts_of(run))}.values())
    away = missing_from(Shown(text_of(units_of_view(run.dialog_id, run.view))), required)
    away.sort(key=lambda one: -one.statement.worth)
    with REMOVED_UNITS.of(run.dialog_id) as index:
        results = [is_found(index, one) for one in away[:MOST_SEARCHES]]
    return {
        "all": len(required),
        "counts": {
            "in_sight": len(required) - len(away),
            "one_search_away": results.count(True),
            "lost": results.count(False),
        },
        "unsearched": len(away) - len(results),
        "away": [
            {
                "text": one.statement.text,
                "role": one.statement.role,
                "values": list(one.values),
                "fate": "one search away" if is_found else "lost",
            }
            for one, is_found in zip(away, results, strict=False)
        ],
    }


def _texts_of(run: RemediationRun) -> list[tuple[str, str]]:
    """Return the newest texts that fit, in their order."""
    texts: list[tuple[str, str]] = []
    room = MOST_CHARS
    for role, text in run.units.exclude(role="tool").order_by("-pk").values_list("role", "text").iterator():
        room -= len(text)
        if room < 0:
            break
        texts.append((role, text))
    return texts[::-1]
