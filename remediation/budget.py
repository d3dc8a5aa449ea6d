"""The context window as one room: who takes how much of it, where a rewrite is due, and what is left. Pure.

A budget is made once for each generation and handed along. Nothing else divides the window (``docs/spec.md#window``).
"""

from dataclasses import dataclass, replace

from dominds.llm.models.model import ModelInfo
from dominds.llm.models.room import SHORTEST_ANSWER, output_room

TRIGGER_SHARE = 0.8  # of the limit: where policies rewrite, unless configured otherwise
AIM_SHARE = 0.5  # of the limit
STREAM_PERCENT = 90  # of the limit: where an answer that streams is cut for a compaction
LEAST_FREE = 0.25  # of a limit, which a rewrite is to leave free where its aim is too small for what must be said
WORTH_SHARE = 0.75  # of the trigger: a rewrite that cannot come below it is not made
LEAST_GAIN = 0.1  # of the request, by a rewrite for a request that cannot be sent without harm
SETTLED_SHARE = 0.6  # of the limit, and of what it took before, that a request takes after a rewrite, recall included
CRITICAL_HALF = 2  # a rewrite answers a critical report where the estimate is above critical divided by this
UNKNOWN_OUTPUT = 1_024  # tokens of an answer where nobody knows how much the model can write
# The rooms for answer and package are at most the window divided by the first, and at least the second, in tokens.
ANSWER_SHARE, LEAST_ANSWER = 8, 256
# The window divided by what instructions and tools may take: above the first, tools that every agent has are described
# briefly, above the second some are left out; these have the third in any case. They take 935 tokens in full.
WHOLE_TOOLS_SHARE, FRAME_SHARE, COMMON_TOOLS_SHARE = 5, 4, 8
ROOMY = 16_384  # tokens, an eighth of which holds all tools that every agent has, twice
# With all of its parts a draft takes some 2,200 tokens, and the round that begins with it should be far from critical.
WHOLE_DRAFT_FROM, LEAST_DRAFT = 8_192, 0.2
DRAFT_FRAME = 500  # tokens of a request around an offered draft, and of the answer around its copy
PACKAGE_SHARE, LEAST_PACKAGE = 16, 384
# Of a budget of 5,000 tokens, 15 % bring 75 % of the evidence into sight, 20 % 77 %, 35 % 82 % and 50 % 84 %.
RECALL_SHARE = 0.35
RECALL_OF_FREED = 3  # right after a rewrite recalled text takes at most what was freed, divided by this
UNKNOWN_LIMIT_RECALL = 1_024  # tokens of recalled text where nobody knows the window
ESTIMATES_ERR = 0.05  # what an estimate may be off by, of a threshold that recalled text must not lift a report above
ANSWERS_DIFFER = 0.1  # what the next answer may be longer by than the longest of the newest
MESSAGES_BETWEEN = 5  # at least, between two rewrites, unless so much of what the first one freed is filled again
FILLED_AGAIN = 0.8


def answer_room(output_length: int | None, window: int | None) -> int:
    """Return the tokens kept free for an answer."""
    wanted = UNKNOWN_OUTPUT if output_length is None else output_length
    return wanted if window is None else min(wanted, max(LEAST_ANSWER, window // ANSWER_SHARE))


def is_full(tokens: int, window: int) -> bool:
    """Check whether a request and its answer of so many tokens left less of the window than the shortest answer."""
    return window - tokens < LEAST_ANSWER


def settled_size(before: int) -> int:
    """Return how many of so many tokens a request may take after a rewrite that was worth it."""
    return int(before * SETTLED_SHARE)


def most_filled(limit: int) -> int:
    """Return the tokens that a rewrite may fill where its aim is too small for what must be said."""
    return int(limit * (1 - LEAST_FREE))


def percent_of(limit: int, percent: int) -> int:
    """Return a share of a limit, in tokens: the one way in which policies take one."""
    return limit * percent // 100


def is_above(tokens: int, limit: int, percent: int) -> bool:
    """Check whether tokens take more than a share of a limit, to the last one."""
    return tokens * 100 > limit * percent


def with_its_answer(window: int, percent: int) -> int:
    """Return the tokens of a side question that leave its answer a share of the window."""
    return window - percent_of(window, percent)


def side_answer(window: int | None, wanted: int, overruns: bool) -> int:
    """Return the tokens that a model is asked for beside the conversation, for a summary say. One that goes on past the
    end of its window gets at most half of it, which a question leaves.
    """
    return wanted if window is None or not overruns else min(wanted, window // 2)


def package_room(window: int) -> int:
    """Return the tokens that a re-entry package needs, to be written."""
    return max(LEAST_PACKAGE, window // PACKAGE_SHARE)


def draft_share(window: int | None) -> float:
    """Return what a drafted package may take of the length that it has in a large window."""
    return 1.0 if window is None else min(1.0, max(LEAST_DRAFT, window / WHOLE_DRAFT_FROM))


def frame_room(window: int, beside: int, share: int = FRAME_SHARE) -> int:
    """Return the tokens that instructions and tools may take where ``beside`` of them cannot be left out."""
    return max(window // share, beside + window // COMMON_TOOLS_SHARE)


@dataclass(frozen=True, slots=True)
class LastRewrite:
    """The newest rewrite of the round, or the attempt at one. Sizes are tokens of the request."""

    freed: int  # 0 where it was rejected
    after: int
    messages_since: int  # of people


@dataclass(frozen=True, slots=True)
class Budget:
    """The parts of one request and its limits, in tokens; all but the limits are estimates.

    ``limit`` is what the policy works within, ``window`` the model's own; None is unknown. ``frame`` stands in every
    request: instructions, tools and reminders. ``stays`` is the part of the ``view`` that no rewrite takes away.
    ``counts_answer`` says that the policy's limit is to hold the room for the ``answer`` as well, ``answered`` what the
    newest answers took. ``optimal`` and ``critical`` are the thresholds of health. ``freed`` is what a rewrite for this
    very message gained.
    """

    limit: int | None = None
    window: int | None = None
    frame: int = 0
    view: int = 0
    stays: int = 0
    answer: int = 0
    answered: int = 0
    counts_answer: bool = False
    trigger_share: float = TRIGGER_SHARE
    aim_share: float = AIM_SHARE
    optimal: int | None = None
    critical: int | None = None
    freed: int | None = None

    @property
    def prompt(self) -> int:
        """Return the prompt that the provider is expected to report, apart from recalled text."""
        return self.frame + self.view

    @property
    def beside(self) -> int:
        """Return the tokens that trigger and aim count against the limit in addition to the view."""
        return self.frame + (self.answer if self.counts_answer else 0)

    @property
    def taken(self) -> int:
        return self.beside + self.view

    @property
    def least(self) -> int:
        """Return the tokens that remain after the best possible rewrite."""
        return self.beside + self.stays

    @property
    def trigger(self) -> int:
        return int((self.limit or 0) * self.trigger_share)

    @property
    def trigger_prompt(self) -> int:
        """The prompt from which on a rewrite is due: what pages and logs name."""
        return max(0, self.trigger - self.beside + self.frame)

    @property
    def aim(self) -> int:
        return int((self.limit or 0) * self.aim_share)

    @property
    def is_over_trigger(self) -> bool:
        return self.limit is not None and self.taken > self.trigger

    @property
    def is_near_trigger(self) -> bool:
        """Check whether a rewrite may be due soon, so that what it needs is looked up."""
        return self.limit is not None and self.taken * 2 > self.limit

    @property
    def settled(self) -> int:
        """Return the most that a request may take after a rewrite that was worth it."""
        return settled_size(self.limit or 0) + self.beside - self.frame

    @property
    def fits(self) -> bool:
        """Check whether the request and its answer fit the window, and the request the policy's limit."""
        within = self.limit is None or self.taken <= self.limit
        return within and (self.window is None or self.prompt + self.answer <= self.window)

    def result_room(self, *, can_rewrite: bool) -> int | None:
        """Return the tokens that a tool result may have beside its answer and what stands or, without a rewrite, is in
        the request; None where the window is unknown."""
        beside = self.frame + self.stays if can_rewrite else self.prompt
        return None if self.window is None else self.window - self.answer - beside

    def with_result(self, tokens: int) -> "Budget":
        """Return the budget of the request with one more result of the call under way, which stays."""
        return replace(self, view=self.view + tokens, stays=self.stays + tokens)

    @property
    def presses(self) -> bool:
        """Check whether the request as it is would be too long, or critical once it is reported."""
        return not self.fits or (self.critical is not None and self.prompt > self.critical)

    @property
    def can_pay(self) -> bool:
        """Check whether a rewrite can gain enough: it comes a quarter below the trigger, takes a tenth off a request
        that presses, or anything off one that is too long to be sent.
        """
        if self.limit is None:
            return False
        if self.least <= self.trigger * WORTH_SHARE:
            return self.least < self.taken
        is_too_long = self.prompt > min(self.limit, self.window or self.limit)
        return is_too_long or (self.presses and self.least <= int(self.taken * (1 - LEAST_GAIN)))

    @property
    def room_for_another(self) -> int | None:
        """Return the tokens between another answer like the newest ones and the place where a stream is cut, negative
        where it would be cut, and written in vain; None where no stream is.
        """
        if self.limit is None or not self.counts_answer:
            return None
        return percent_of(self.limit, STREAM_PERCENT) - self.prompt - int(self.answered * (1 + ANSWERS_DIFFER))

    def is_rested(self, last: LastRewrite | None) -> bool:
        """Check whether enough was said since the last rewrite for another one."""
        if last is None or last.messages_since >= MESSAGES_BETWEEN or self.presses:
            return True
        if self.room_for_another is not None and self.room_for_another < 0:
            return True
        return last.freed > 0 and self.prompt - last.after >= int(last.freed * FILLED_AGAIN)

    @property
    def message_room(self) -> int:
        """The tokens that a message may have beside what stands in every request, and the shortest answer."""
        return max(0, (self.window or 0) - self.frame - LEAST_ANSWER)

    def after_rewrite(self, before: int) -> "Budget":
        """Return the budget of a request that a rewrite made of one of ``before`` tokens."""
        return replace(self, freed=max(0, before - self.prompt))

    def package_excess(self, prompt: int) -> int:
        """Return the tokens that have to be left out of a prompt of so many, so that a package can be written behind
        it.
        """
        return 0 if self.window is None else prompt + package_room(self.window) - self.window

    def holds_twice(self, package: int, used: int) -> bool:
        """Check whether a drafted package can be offered in a request of ``used`` tokens, and copied in its answer."""
        return not self.window or used + 2 * package + DRAFT_FRAME <= self.window

    def output(
        self, model: ModelInfo, beside: int, wanted: int, margin: int | None, shortest: int = SHORTEST_ANSWER
    ) -> int:
        """Return the tokens of an answer to ask for, with ``beside`` tokens of the request that the view does not hold.

        Less than an answer of use is never asked for: a refusal is repeated with more room, and an answer of a few
        words is not.
        """
        prompt = self.prompt + beside
        room = output_room(model, prompt, window=self.window, wanted=wanted, margin=margin, shortest=shortest)
        return min(wanted, max(LEAST_ANSWER, room or wanted))

    def units_room(self, tokens: int) -> int:
        """Return what is left for units of a request, with its answer where that counts, of so many tokens."""
        return tokens - self.beside

    def recall_room(self, share: float = RECALL_SHARE) -> int:
        """Return the tokens that recalled text may take: what is free below the trigger, at most its share, and never
        so much that a report passes a threshold or an answer is cut by it. A budget of the policy's own, in a larger
        window, is filled to its end."""
        if self.limit is None:
            rooms = [UNKNOWN_LIMIT_RECALL]
        else:
            is_window = self.window is not None and self.limit >= self.window
            rooms = [int(self.limit * share), (self.trigger if is_window else self.limit) - self.taken]
        if self.window is not None:
            rooms.append(self.window - self.answer - self.prompt)
        if self.room_for_another is not None:
            rooms.append(self.room_for_another)
        for threshold in (self.optimal, self.critical):
            if threshold is not None and self.prompt <= threshold:
                rooms.append(int(threshold * (1 - ESTIMATES_ERR)) - self.prompt)
        if self.freed is not None:
            rooms.append(self.freed // RECALL_OF_FREED)
            most = min(self.prompt + self.freed, self.limit or self.prompt + self.freed)
            rooms.append(settled_size(most) - self.prompt)
        return max(0, min(rooms))
