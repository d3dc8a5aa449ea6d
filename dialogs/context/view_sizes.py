"""Estimated sizes of one view, computed when asked for: most steps of a dialog need none."""

import functools
from collections.abc import Sequence
from dataclasses import replace

from dialogs.context.served import Served
from dialogs.context.sizes import LEAST_CHARS_PER_TOKEN, Sizes, parts_tokens, sizes_of
from dialogs.context.view import View
from dialogs.models import Dialog
from dominds.llm.catalog.catalog import ModelInfo
from dominds.llm.messages import ToolSpec
from remediation.policies.policy import Policy
from remediation.tokens.calibration import Counted


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
        """``whole`` are the sizes of a view of which this one leaves something out."""
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

    def counted_with(self, recalled_tokens: int) -> Counted | None:
        """The raw counts of a request with that much beside the view, where the request was counted:
        its report calibrates."""
        policy = self._served.policy
        if not policy.counts and policy.name not in self._known:
            return None
        counted = self.own.counted
        return replace(counted, text=counted.text + recalled_tokens)

    @functools.cached_property
    def most_tokens(self) -> float:
        return most_tokens(self._view, self._served.model)

    def of_shorter(self, view: View) -> "ViewSizes":
        """Return the sizes of the view that leaves something of this one out of one request."""
        return ViewSizes(self._dialog, self._served, view, self._tools, whole=self)


def most_tokens(view: View, model: ModelInfo) -> float:
    """Return the most tokens that the view's messages may take, without counting them."""
    return view.chars / LEAST_CHARS_PER_TOKEN + parts_tokens(view.messages, model)
