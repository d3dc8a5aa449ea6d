"""What outlasts rewrites of the sessions of PyPI's ``compaction-conformance-kit``: ``make kit``.

Twelve of its sessions restate eight values each in other words, seven plant statements of five types. Small talk of
ours follows each, so that the context is rewritten again and again. ``dominds evaluate`` reads them as the kit writes
them.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from remediation.evaluation.evaluate import evaluate
from remediation.evaluation.report import to_markdown

BUDGET = 1_200  # tokens; half of it, at which a rewrite aims, is 30 % of most sessions
SMALL_TALK = 100  # messages
TOPICS = (
    "the weather",
    "a train ride",
    "lunch",
    "the garden",
    "a film",
    "the neighbours' dog",
    "a long walk",
    "coffee",
)
MOODS = ("It was fine.", "Nothing came of it.", "That took a while.", "I had to laugh.", "So it goes.")


def sessions() -> Iterator[dict[str, Any]]:
    """Yield the kit's sessions with their canaries, in the kit's own form."""
    from compaction_kit.canaries import seeded_canaries
    from compaction_kit.corpus import build_random_session
    from compaction_kit.generated import build_generated_session
    from compaction_kit.semantic_corpus import build_semantic_heldout_session, build_semantic_session
    from compaction_kit.session import build_seeded_session

    made = [build(seed) for build in (build_semantic_session, build_semantic_heldout_session) for seed in range(1, 7)]
    made += [(build_seeded_session(), seeded_canaries())]
    made += [build(seed) for build in (build_random_session, build_generated_session) for seed in range(1, 4)]
    for session, canaries, *_ in made:
        turns = [{"role": turn.role, "content": turn.text} for turn in session.turns]
        yield {"turns": [*turns, *small_talk()], "canaries": [asdict(canary) for canary in canaries]}


def small_talk() -> Iterator[dict[str, str]]:
    """Yield messages that nobody has to remember, no two of them alike."""
    for number in range(SMALL_TALK // 2):
        topic, mood = TOPICS[number % len(TOPICS)], MOODS[number % len(MOODS)]
        yield {"role": "user", "content": f"Today, {number + 1} days on, we talked about {topic}. {mood}"}
        yield {"role": "assistant", "content": f"Thank you for telling me about {topic}."}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--out", type=Path, default=Path("var/kit.json"), help="where the sessions are written")
    asked = parser.parse_args()
    if not find_spec("compaction_kit"):
        sys.exit("Install the kit first: make kit")
    asked.out.parent.mkdir(exist_ok=True)
    asked.out.write_text(json.dumps(list(sessions()), indent=1))
    print(to_markdown(evaluate([asked.out], [asked.budget])))


if __name__ == "__main__":
    main()
