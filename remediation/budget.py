"""The division of the context window: how much each part takes, when a rewrite is due, and how much is left. Pure.

A budget is made once for each generation and handed along. Nothing else divides the window (``docs/spec.md#window``).
"""

from dataclasses import dataclass, replace

from dominds.llm.models.model import ModelInfo
from dominds.llm.models.room import SHORTEST_ANSWER, output_room

TRIGGER_SHARE = 0.8  # of the limit: where policies rewrite, unless configured otherwise
AIM_SHARE = 0.5  # of the limit
STREAM_PERCENT = 90  # of the limit: a streaming answer that reaches it is cut for a compaction
LEAST_FREE = 0.25  # of the limit: stays free even if the text that a rewrite must keep exceeds its aim
WORTH_SHARE = 0.75  # of the trigger: a rewrite that cannot come below this is made only in need
LEAST_GAIN = 0.1  # of the request: the least gain of a rewrite in need, and of one that people are advised to take
SETTLED_SHARE = 0.6  # of the limit, and of the size before under compaction: what a request may have after a rewrite
CRITICAL_SHARE = 0.5  # of that threshold, which an estimate must exceed for a critical report to make a rewrite due
UNKNOWN_OUTPUT = 1_024  # tokens kept free for an answer whose greatest length is unknown
# A name that ends in DIVISOR is what the window is divided by, in whole tokens.
ANSWER_DIVISOR, LEAST_ANSWER = 8, 256  # an answer's room is at most that part, and at least so many tokens
# Above the first part of the window, tools that every agent has are described briefly. Above the second, some of them
# are left out, but together they always have the third. In full they take 935 tokens.
WHOLE_TOOLS_DIVISOR, FRAME_DIVISOR, COMMON_TOOLS_DIVISOR = 5, 4, 8
ROOMY = 16_384  # tokens: an eighth of this window holds the tools that every agent has, twice over
# A whole draft of a package takes some 2,200 tokens. In windows below the first number it is shortened in proportion,
# so that the next round begins far from critical, but never below the second, a share of its length.
WHOLE_DRAFT_FROM, LEAST_DRAFT = 8_192, 0.2
DRAFT_FRAME = 500  # tokens around an offered draft in a request, and around its copy in the answer
PACKAGE_DIVISOR, LEAST_PACKAGE = 16, 384  # a package's room is that part, and at least so many tokens
REMINDERS_DIVISOR, MOST_REMINDERS = 4, 16_000  # all reminders have at most that part, and at most so many tokens
# Tuned on a budget of 5,000 tokens: a share of 15 % brings 75 % of the evidence into sight, 20 % brings 77 %, 35 % 82 %
# and 50 % 84 %.
RECALL_SHARE = 0.35
FREED_DIVISOR = 3  # right after a rewrite, recalled text takes at most this part of the freed tokens
UNKNOWN_LIMIT_RECALL = 1_024  # tokens of recalled text if the limit is unknown
ESTIMATES_ERR = 0.05  # recalled text stays this share below a threshold, since estimates err
ANSWERS_DIFFER = 0.1  # the share by which the next answer may be longer than the longest of the newest
MESSAGES_BETWEEN = 5  # the least number of messages between two rewrites, unless FILLED_AGAIN holds
FILLED_AGAIN = 0.8  # the share of the freed tokens that, once filled again, allows another rewrite


def answer_room(output_length: int | None, window: int | None) -> int:
    """Return the tokens kept free for an answer."""
    wanted = UNKNOWN_OUTPUT if output_length is None else output_length
    return wanted if window is None else min(wanted, max(LEAST_ANSWER, window // ANSWER_DIVISOR))


def is_full(tokens: int, window: int) -> bool:
    """Check whether a request and its answer left less of the window than the shortest answer needs."""
    return window - tokens < LEAST_ANSWER


def settled_size(before: int) -> int:
    """Return the most tokens that a request of ``before`` tokens may have after a rewrite that was worth it."""
    return int(before * SETTLED_SHARE)


def most_filled(limit: int) -> int:
    """Return the tokens that a rewrite may fill if its aim is too small for the text that it must keep."""
    return int(limit * (1 - LEAST_FREE))


def percent_of(limit: int, percent: int) -> int:
    """Return a share of a limit, in whole tokens, rounded down. All policies round in this way."""
    return limit * percent // 100


def is_above(tokens: int, limit: int, percent: int) -> bool:
    """Check whether tokens take more than a share of a limit, without rounding."""
    return tokens * 100 > limit * percent


def with_its_answer(window: int, percent: int) -> int:
    """Return the tokens that a side question may have, so that ``percent`` of the window are left for its answer."""
    return window - percent_of(window, percent)


def side_answer(window: int | None, wanted: int, overruns: bool) -> int:
    """Return the length to ask for in an answer beside the conversation, such as a summary.

    A model that ``overruns`` goes on past the end of its window, so it is asked for at most half of the window. The
    question leaves that much.
    """
    return wanted if window is None or not overruns else min(wanted, window // 2)


def package_room(window: int) -> int:
    """Return the tokens that a model needs to write a re-entry package."""
    return max(LEAST_PACKAGE, window // PACKAGE_DIVISOR)


def reminders_room(window: int | None) -> int:
    """Return the tokens that all reminders together may take, since every request carries them."""
    return MOST_REMINDERS if window is None else min(MOST_REMINDERS, window // REMINDERS_DIVISOR)


def draft_share(window: int | None) -> float:
    """Return the share of its full length that a drafted package may have in this window."""
    return 1.0 if window is None else min(1.0, max(LEAST_DRAFT, window / WHOLE_DRAFT_FROM))


def frame_room(window: int, beside: int, divisor: int = FRAME_DIVISOR) -> int:
    """Return the tokens that instructions and tools may take, of which ``beside`` are of those that always stay."""
    return max(window // divisor, beside + window // COMMON_TOOLS_DIVISOR)


@dataclass(frozen=True, slots=True)
class LastRewrite:
    """The newest rewrite of the round, or the attempt at one. Sizes are tokens of the request."""

    freed: int  # 0 if it was rejected
    after: int
    messages_since: int  # messages of people


@dataclass(frozen=True, slots=True)
class Budget:
    """The parts of one request and its limits, in tokens; all but the limits are estimates.

    ``limit`` is the policy's, ``window`` the model's; None is unknown. ``frame`` is the size of instructions, tools and
    reminders, which stand in every request. ``stays`` is the part of the ``view`` that no rewrite takes away.
    ``answer`` is the room kept for the answer, which counts against the limit if ``counts_answer``. ``answered`` is the
    length of the longest of the newest answers. ``optimal`` and ``critical`` are the thresholds of health. ``freed`` is
    the gain of a rewrite for this very message, or None if there was none.
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
        """Return the size of the prompt above which a rewrite is due, as pages and logs name it."""
        return max(0, self.trigger - self.beside + self.frame)

    @property
    def aim(self) -> int:
        return int((self.limit or 0) * self.aim_share)

    @property
    def is_over_trigger(self) -> bool:
        return self.limit is not None and self.taken > self.trigger

    @property
    def is_near_trigger(self) -> bool:
        """Check whether more than half of the limit is taken, so that a rewrite's facts should be looked up."""
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
        """Return the tokens that a tool result may have, with room for the answer; None if the window is unknown.

        If the policy can rewrite, the result has to fit beside the units that stay; otherwise beside the whole view.
        """
        beside = self.frame + self.stays if can_rewrite else self.prompt
        return None if self.window is None else self.window - self.answer - beside

    def with_result(self, tokens: int) -> "Budget":
        """Return the budget with one more tool result of the running call, which no rewrite may take away."""
        return replace(self, view=self.view + tokens, stays=self.stays + tokens)

    @property
    def presses(self) -> bool:
        """Check whether the request is too long as it is, or would be reported as critical."""
        return not self.fits or (self.critical is not None and self.prompt > self.critical)

    @property
    def can_pay(self) -> bool:
        """Check whether a rewrite can gain enough.

        It has to come a quarter below the trigger. For a request that presses a tenth is enough, and for one that is
        too long to be sent any gain.
        """
        if self.limit is None:
            return False
        if self.least <= self.trigger * WORTH_SHARE:
            return self.least < self.taken
        is_too_long = self.prompt > min(self.limit, self.window or self.limit)
        return is_too_long or (self.presses and self.least <= int(self.taken * (1 - LEAST_GAIN)))

    @property
    def room_for_another(self) -> int | None:
        """Return the tokens that are left below STREAM_PERCENT once another answer like the newest ones is written.

        A negative number means that the answer would be cut, and written in vain. The result is None if streams are
        not cut.
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
        """Return the tokens that a message may have beside the frame of every request and the shortest answer."""
        return max(0, (self.window or 0) - self.frame - LEAST_ANSWER)

    def after_rewrite(self, before: int) -> "Budget":
        """Return the budget of a rewritten request whose prompt had ``before`` tokens."""
        return replace(self, freed=max(0, before - self.prompt))

    def package_excess(self, prompt: int) -> int:
        """Return the tokens to leave out of a prompt so that a package can be written after it; negative if it fits."""
        return 0 if self.window is None else prompt + package_room(self.window) - self.window

    def holds_twice(self, package: int, used: int) -> bool:
        """Check whether a drafted package can be offered in a request of ``used`` tokens, and copied in its answer."""
        return not self.window or used + 2 * package + DRAFT_FRAME <= self.window

    def output(
        self, model: ModelInfo, beside: int, wanted: int, margin: int | None, shortest: int = SHORTEST_ANSWER
    ) -> int:
        """Return the length to ask for in an answer, in tokens.

        ``beside`` is the size of text in the request, such as recalled turns, that the view does not hold. At least
        LEAST_ANSWER is asked for: a request that is refused for it is repeated with more room, but a uselessly short
        answer is not repeated.
        """
        prompt = self.prompt + beside
        room = output_room(model, prompt, window=self.window, wanted=wanted, margin=margin, shortest=shortest)
        return min(wanted, max(LEAST_ANSWER, room or wanted))

    def units_room(self, tokens: int) -> int:
        """Return the part of ``tokens`` that is left for units beside the frame and, if it counts, the answer."""
        return tokens - self.beside

    def recall_room(self, share: float = RECALL_SHARE) -> int:
        """Return the tokens that recalled text may take.

        It takes at most ``share`` of the limit and only what is free below the trigger, or below the limit if that is
        smaller than the window. It never lifts a report above a threshold of health, and never causes an answer to be
        cut. Right after a rewrite it takes only a part of the freed tokens, and leaves the request settled. A
        compaction, whose limit holds the answer as well, promises a share of the size before (docs/spec.md#recall).
        """
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
            rooms.append(self.freed // FREED_DIVISOR)
            before = self.prompt + self.freed
            limit = before if self.limit is None else self.limit
            rooms.append(settled_size(min(before, limit) if self.counts_answer else limit) - self.prompt)
        return max(0, min(rooms))
