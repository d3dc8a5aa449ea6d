"""Dialogs that already have a history: the rows that the product itself would have written, stored in bulk."""

from random import Random
from typing import Any

USER_CHARS = 100
ANSWER_CHARS = 400
WORDS = (
    "the parser fails on empty input because refunds carry a customer id and retries are bounded by config.yaml while "
    "never pushing to main returns error 503 from billing service with amount 12,499 at line 42 of app.py so please "
    "look whether yesterday's release changed how invoices were rounded before they reached our ledger in Lisbon where "
    "nobody expected another queue between two small workers that had run quietly for eleven months without any alarm "
    "or manual restart"
).split()


def text_of(chars: int, number: int) -> str:
    """Words that PostgreSQL can compress no better than prose: the same ones for the same number."""
    rng = Random(number)
    words = (rng.choice(WORDS) + (str(rng.randrange(999)) if rng.random() < 0.2 else "") for _ in range(chars // 4))
    return f"{number} {' '.join(words)}"[:chars].ljust(chars, ".")


def dialog_at(depth: int, agent: Any, owner: Any, window: int | None = None) -> Any:
    """An idle dialog after ``depth`` answered messages; with ``window``, a rewrite lets the
    model see that many turns."""
    from dialogs.actions.messages import create_dialog
    from dialogs.models import Event, Generation, Turn
    from health.models import HealthSnapshot

    dialog = create_dialog(owner, agent.pk)
    numbers = range(1, depth + 1)
    generations = Generation.objects.bulk_create(Generation(**_generation(dialog, agent, n)) for n in numbers)
    HealthSnapshot.objects.bulk_create(HealthSnapshot(**_snapshot(row)) for row in generations)
    Turn.objects.bulk_create(
        Turn(**turn) for n, row in zip(numbers, generations, strict=True) for turn in _turns(dialog, n, row)
    )
    Event.objects.bulk_create(
        (Event(dialog=dialog, seq=n, type="turn", data={"turn": (n - 1) // 4 + 1}) for n in range(1, depth * 8 + 1)),
        batch_size=5_000,  # a statement has no more than 65,535 parameters
    )
    dialog.last_turn_seq = dialog.last_position = 2 * depth
    dialog.last_event_seq, dialog.title = depth * 8, "A benchmark"
    dialog.save()
    if window is not None:
        _rewrite(dialog, window)
    return dialog


def _generation(dialog: Any, agent: Any, n: int) -> dict[str, Any]:
    return {
        "dialog": dialog,
        "round_number": 1,
        "purpose": "reply",
        "outcome": "kept",
        "epoch": n,
        "provider": agent.provider,
        "model": agent.model,
        "answers_seq": 2 * n - 1,
        "frame": "f" * 32,
        "base": "1:0",
        "request_chars": n * 500,
        "prompt_tokens": n * 150,
        "completion_tokens": 100,
        "total_tokens": n * 150 + 100,
        "finish_reason": "stop",
    }


def _snapshot(generation: Any) -> dict[str, Any]:
    return {
        "generation": generation,
        "prompt_tokens": generation.prompt_tokens,
        "completion_tokens": 100,
        "level": "healthy",
        "model_context_limit": 10**8,
        "optimal_max_tokens": 10**8,
        "hard_util": 0.1,
        "optimal_util": 0.1,
    }


def _turns(dialog: Any, n: int, generation: Any) -> list[dict[str, Any]]:
    """A message and its answer."""
    asked, answered = 2 * n - 1, 2 * n
    both = {"dialog": dialog, "round_number": 1}
    user = {"seq": asked, "position": asked, "role": "user", "status": "answered", "text": text_of(USER_CHARS, n)}
    agent = {"seq": answered, "position": answered, "role": "assistant", "status": "complete"}
    return [{**both, **user}, {**both, **agent, "text": text_of(ANSWER_CHARS, n), "generation": generation}]


def _rewrite(dialog: Any, window: int) -> None:
    from remediation.models import RemediationRun

    last = dialog.last_position
    RemediationRun.objects.create(
        dialog=dialog,
        round_number=1,
        policy="retention",
        reason="benchmark",
        est_before=1,
        est_after=1,
        base_position=last,
        removed=[],
        view=[{"turns": [seq]} for seq in range(max(1, last - window + 1), last + 1)],
    )
