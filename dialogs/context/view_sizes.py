"""Estimated sizes of one view, computed when asked for: most steps of a dialog need none."""

import functools
from collections.abc import Sequence
from dataclasses import replace

from dialogs.context.served import Served
from dialogs.context.sizes import LEAST_CHARS_PER_TOKEN, Sizes, facts_of, frame_of, parts_tokens, sizes_of
from dialogs.context.view import View
from dialogs.models import Dialog
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.messages import ToolSpec
from dominds.weighted_cache import Bounded
from remediation.policies.policy import Policy
from remediation.strategies.left_out import ALL_SHOWN
from remediation.tokens.calibration import Counted
from remediation.tokens.counting import Counter, counter_for

COUNTED_VIEWS = 4_096  # whose counts are cached: two numbers each

# For each view: how many of its messages were counted so far, and their tokens.
_grown = Bounded[tuple[int, int]](COUNTED_VIEWS)


class ViewSizes:
    """The sizes of a dialog's view, counted when first asked for, once for each policy's way of counting."""

    def __init__(
        self,
        dialog: Dialog,
        served: Served,
        view: View,
        tools: Sequence[ToolSpec],
        whole: "ViewSizes | None" = None,
    ) -> None:
        """``whole`` is given if this view leaves out a part of another one: the sizes of that one."""
        self._dialog, self._served, self._view, self._tools, self._whole = dialog, served, view, tools, whole
        self._known: dict[str, Sizes] = {}

    def under(self, policy: Policy) -> Sizes:
        if policy.name not in self._known:
            served, units = self._served, self._view.units
            sizes = sizes_of(self._dialog, units, served.model, served.thresholds, self._tools, policy)
            if self._whole is not None:
                sizes = replace(sizes, left_out=max(0, self._whole.under(policy).prompt - sizes.prompt))
            self._known[policy.name] = sizes
        return self._known[policy.name]

    @property
    def own(self) -> Sizes:
        """Return the sizes by the policy in force."""
        return self.under(self._served.policy)

    @property
    def are_told(self) -> bool:
        """Check whether the sizes are counted anyway: the policy in force uses them, or they were asked for."""
        return self._served.policy.counts or self._served.policy.name in self._known

    def counted_with(self, recalled_tokens: int) -> Counted:
        """Return the uncorrected counts of a request with ``recalled_tokens``, which its report calibrates."""
        counted = self.own.counted if self.are_told else self._counted()
        return replace(counted, text=counted.text + recalled_tokens)

    def _counted(self) -> Counted:
        """Count the request as its sizes would, but without classifying units."""
        dialog, view, model = self._dialog, self._view, self._served.model
        facts = facts_of(dialog.agent, model, self._served.thresholds)
        counter = counter_for(model.model_id, self._served.policy.tokenizer(facts))
        frame = frame_of(dialog, view.units, self._tools, counter).counted
        messages, left_out = view.sendable(model)
        text = counter.count_messages(messages) if left_out else _count_growing(dialog, view, counter)
        return replace(
            frame, text=frame.text + text, images=parts_tokens(messages if left_out else view.with_parts, model)
        )

    @functools.cached_property
    def most_tokens(self) -> float:
        return most_tokens(self._view, self._served.model)

    def of_shorter(self, view: View) -> "ViewSizes":
        """Return the sizes of a ``view`` that leaves out a part of this one."""
        return ViewSizes(self._dialog, self._served, view, self._tools, whole=self)


def _count_growing(dialog: Dialog, view: View, counter: Counter) -> int:
    """Count the view's messages. Only those since the last count are new: all but the newest unit never change."""
    messages = view.messages
    if not view.units or view.left_out != ALL_SHOWN:
        return counter.count_messages(messages)
    key = (dialog.pk, view.base, counter.name)
    settled = len(messages) - len(view.units[-1].messages)
    counted, tokens = _grown.get(key) or (0, 0)
    if counted > settled:
        counted = tokens = 0
    tokens += counter.count_messages(messages[counted:settled])
    _grown.put(key, (settled, tokens), weight=1)
    return tokens + counter.count_messages(messages[settled:])


def most_tokens(view: View, model: ModelInfo) -> float:
    """Return the most tokens that the view's messages may take, without counting them."""
    return view.chars / LEAST_CHARS_PER_TOKEN + parts_tokens(view.with_parts, model)
