"""The ways to make room in a dialog's context, each with the outcome it would have now, and the best of them."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from dialogs.context.limits import policy_of
from dialogs.models import Dialog
from dialogs.queries.context_report import previews_of
from dialogs.queries.moments import est_sizes
from remediation.context import UnitKind
from remediation.policies.policy import ByHand
from remediation.policies.registry import by_hand
from remediation.policies.requested import Gain, best_of

SHOWN = 12  # messages that a preview lists


@dataclass(frozen=True, slots=True)
class Way:
    """One rewrite by hand with its preview: what would be removed, what would replace it, and the sizes."""

    hand: ByHand
    preview: dict[str, Any]
    is_own: bool = False

    @property
    def gain(self) -> Gain:
        preview = self.preview
        return Gain(
            before=preview["est_before"],
            after=preview["est_before"] if preview["problem"] else preview["est_after"],
            limit=preview["limit"],
            is_own=self.is_own,
            keeps_words=bool(preview["summary"]),
            starts_over=self.hand.starts_over,
        )

    @property
    def frees(self) -> str:
        """Return in a few words how much room it makes, or an empty text if it makes none."""
        freed = self.gain.freed
        return _("frees est. {number:,} tokens").format(number=freed) if freed else ""

    @property
    def sizes(self) -> str:
        gain = self.gain
        return est_sizes(gain.before, gain.after)

    @property
    def gone(self) -> list[dict[str, Any]]:
        """Return the messages that the model would no longer see, or see shortened."""
        return [unit for unit in self.preview["removed"] if unit["kind"] != UnitKind.SUMMARY]

    @property
    def more(self) -> int:
        return max(0, len(self.gone) - SHOWN)

    @property
    def words(self) -> str:
        """Return a sentence about what becomes of which messages."""
        shortened = self.preview["shortened"]
        gone = len(self.gone) - shortened
        clauses = list[str]()
        if gone > 0 and self.preview["summary"]:
            clauses.append(
                ngettext("{number} message becomes this summary.", "{number} messages become this summary.", gone)
            )
        elif gone > 0:
            clauses.append(
                ngettext(
                    "{number} message goes to the archive, and nothing stands for it.",
                    "{number} messages go to the archive, and nothing stands for them.",
                    gone,
                )
            )
        if shortened:
            clauses.append(
                ngettext("{shortened} message is shortened.", "{shortened} messages are shortened.", shortened)
            )
        return " ".join(clauses).format(number=gone, shortened=shortened)


@dataclass(frozen=True, slots=True)
class Ways:
    """All ways by hand, those that help first, and the best one, if any frees enough."""

    best: Way | None
    all: list[Way]


def ways_of(dialog: Dialog) -> Ways:
    """Preview every rewrite by hand. Raises ``Refusal`` and ``UnknownModel`` if nothing can be previewed."""
    hands, own = [policy.by_hand for policy in by_hand() if policy.by_hand], policy_of(dialog).policy.by_hand
    previews = previews_of(dialog, [hand.verb for hand in hands])
    ways = [Way(hand, previews[hand.verb], hand == own) for hand in hands]
    at = best_of([way.gain for way in ways])
    return Ways(None if at is None else ways[at], sorted(ways, key=lambda way: not way.gain.freed))
