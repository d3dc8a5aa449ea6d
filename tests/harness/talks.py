"""Long talks of five shapes, and what a context management does to each: the table of ``docs/quality.md#windows``."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from dialogs.models import Dialog, Generation, Turn
from health.levels import Level
from remediation.models import RemediationRun
from tests.doubles.brains import GUIDANCE, LAST_RESORT, PACKAGE, Call, Prompt, Reply
from tests.flows import pruner

WORDS = (
    "harbour ledger copper lantern orchard village packet anchor meadow candle bridge winter saddle timber kettle "
    "island "
    "garden pencil marble ribbon valley window carpet barrel needle forest rocket mirror butter flower engine basket"
).split()
FRAME = 950  # tokens of instructions and tools, at most
REWRITES = 3  # that a talk is long enough for


def prose(number: int, tokens: int) -> str:
    """About so many tokens, of which no two texts have the same sentences."""
    words = [f"{WORDS[(number * 7 + k * 5) % len(WORDS)]}" for k in range(max(1, tokens - 4))]
    sentences = [" ".join(words[start : start + 11]).capitalize() + "." for start in range(0, len(words), 11)]
    return f"Note {number}. " + " ".join(sentences)


@dataclass(frozen=True, slots=True)
class Shape:
    """A way to talk. Sizes are tokens, ``results`` percent of what the policy works within."""

    name: str
    message: int
    answer: int
    results: tuple[int, ...] = ()  # a call for each message, in turn
    paste: int = 0  # percent of the limit, once, in the middle

    def messages(self, limit: int, most: int) -> int:
        """Return how many messages three rewrites take, at most so many; 0 where so many fill no limit of this size."""
        each = self.message + self.answer + limit * sum(self.results) // (100 * max(1, len(self.results)))
        begins = (limit * 8 // 10 - FRAME - limit * self.paste // 100) // each
        return 0 if begins > most else min(most, begins + REWRITES * limit * 3 // 10 // each + 8)


SHAPES = (
    Shape("one-line", 12, 25),
    Shape("answers", 20, 450),
    Shape("tools", 15, 30, results=(5, 10, 40, 20)),
    Shape("paste", 15, 30, paste=40),
    Shape("paragraphs", 100, 93),
)


@dataclass
class Talker:
    """The model: it answers as the shape has it, prunes and summarises as it is asked, and clears its mind when it
    must."""

    shape: Shape
    limit: int
    folder: Path
    heeds: bool = True  # guidance, by clearing its mind
    answers: int = 0
    cut_results: int = 0  # newest results that did not come whole
    too_large: int = 0  # those of them that the product told to be larger than the room there is
    expected: str = ""
    sent: list[int] = field(default_factory=list)

    def __call__(self, prompt: Prompt) -> Reply:
        if pruner.is_asked(prompt.body):
            return pruner.prune(prompt)
        is_guided = self.heeds and GUIDANCE in prompt.last.text
        if prompt.required_tools == ("clear_mind",) or LAST_RESORT in prompt.last.text or is_guided:
            return Reply(calls=(Call("clear_mind", {"reminder_content": PACKAGE}),))
        if not prompt.tools:
            return Reply("They spoke of notes, and the agent answered each of them. Nothing is open.")
        results = [message for message in prompt.messages if message.role == "tool"]
        is_result = bool(self.expected) and bool(results)
        if is_result:
            is_refused = results[-1].text.startswith("The tool result has est. ")
            self.too_large += is_refused
            self.cut_results += not is_refused and self.expected not in results[-1].text
            self.expected = ""
            return Reply(prose(10_000 + self.answers, self.shape.answer))
        self.answers += 1
        if self.shape.results:
            share = self.shape.results[self.answers % len(self.shape.results)]
            self.expected = prose(50_000 + self.answers, self.limit * share // 100)
            name = f"note-{self.answers}.txt"
            (self.folder / name).write_text(self.expected)
            return Reply(calls=(Call("read_file", {"path": name}),))
        return Reply(prose(10_000 + self.answers, self.shape.answer))


def messages_of(shape: Shape, limit: int, number: int) -> Iterator[str]:
    for place in range(number):
        tokens = limit * shape.paste // 100 if shape.paste and place == number // 2 else shape.message
        yield prose(place, tokens)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one talk came to. Shares are of what the policy works within."""

    messages: int
    answered: int
    state: str
    rewrites: int
    rejected: int
    between: float  # messages between two rewrites, mean
    held: float  # messages that the freed tokens hold, mean
    made_at: float  # the request that a rewrite is made for, least
    gauge_after: float  # the next reported prompt, most
    rises: int  # rewrites after which the reported prompt is not smaller
    reduction: float  # of the estimate, mean
    extra_calls: float  # a rewrite
    flips: int  # to critical and back: above 100,000 tokens a level may well turn yellow
    clears: int
    refused: int
    cut_results: int
    too_large: int

    def row(self) -> str:
        return (
            f"{self.answered}/{self.messages} {self.state} | {self.rewrites} ({self.rejected}) | {self.between:.1f} | "
            f"{self.held:.1f} | "
            f"{self.made_at:.0%} | {self.gauge_after:.0%} | {self.rises} | {self.reduction:.0%} | "
            f"{self.extra_calls:.1f} | "
            f"{self.flips} | {self.clears} | {self.refused} | {self.cut_results} | {self.too_large}"
        )


HEAD = (
    "messages | rewrites (rejected) | between | held | made at | gauge after | rises | reduction | calls | flips | "
    "clears | refused | cut | too large"
)


def _held(runs: list[RemediationRun], numbers: list[int]) -> float:
    """Return how many messages of this talk the tokens hold that each rewrite but the last one freed: what was freed,
    divided by what one message added from that rewrite to the next."""
    freed = added = messages = 0
    for place, (one, two) in enumerate(pairwise(runs)):
        freed += one.est_before - one.est_after
        added += two.est_before - one.est_after
        messages += numbers[place + 1] - numbers[place]
    return freed / added * messages / max(1, len(runs) - 1) if added > 0 else 0.0


def measured(dialog: Dialog, limit: int, refused: int, talker: Talker) -> Measured:
    runs = list(RemediationRun.objects.filter(dialog=dialog).order_by("id"))
    kept = [run for run in runs if not getattr(run, "rejected", "")]
    replies = list(
        dialog.generations.filter(purpose=Generation.Purpose.REPLY, prompt_tokens__isnull=False).order_by("id")
    )
    users = list(dialog.turns.filter(role=Turn.Role.USER).order_by("position").values_list("position", "status"))
    numbers = [sum(position is not None and position <= run.base_position for position, _ in users) for run in kept]
    gaps = [later - earlier for earlier, later in pairwise(numbers)]
    pairs = [
        (
            next((reply for reply in reversed(replies) if reply.started_at < run.created_at), None),
            next((reply for reply in replies if reply.started_at > run.created_at), None),
        )
        for run in kept
    ]
    side = dialog.generations.filter(purpose__in=[Generation.Purpose.PRUNE, Generation.Purpose.SUMMARY]).count()
    levels = [
        reply.snapshot.level
        for reply in replies
        if hasattr(reply, "snapshot") and reply.snapshot.level != Level.UNKNOWN
    ]
    return Measured(
        messages=len(users),
        answered=sum(status == "answered" for _, status in users),
        state=dialog.state,
        rewrites=len(kept),
        rejected=len(runs) - len(kept),
        between=sum(gaps) / len(gaps) if gaps else 0.0,
        held=_held(kept, numbers),
        made_at=min((run.est_before / limit for run in kept), default=0.0),
        gauge_after=max(((after.prompt_tokens or 0) / limit for _, after in pairs if after), default=0.0),
        rises=sum(
            bool(before and after and (after.prompt_tokens or 0) >= run.est_before)
            for run, (before, after) in zip(kept, pairs, strict=True)
        ),
        reduction=sum(1 - run.est_after / run.est_before for run in kept) / len(kept) if kept else 0.0,
        extra_calls=side / len(runs) if runs else float(side),
        flips=sum((one == Level.CRITICAL) != (other == Level.CRITICAL) for one, other in pairwise(levels)),
        clears=dialog.generations.filter(purpose=Generation.Purpose.FORCED_CLEAR).count(),
        refused=refused,
        cut_results=talker.cut_results,
        too_large=talker.too_large,
    )
