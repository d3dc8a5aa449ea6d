"""What Prometheus is told of side dialogs, from their rows."""

from collections import Counter
from collections.abc import Iterable, Iterator

from django.db import DatabaseError
from django.db.models import Min
from django.utils import timezone
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector

from dialogs.extras.teams import sight
from dialogs.extras.teams.models import SideDialog
from dialogs.models import Dialog
from dialogs.models.known_costs import sum_of_costs

STATES = ("queued", "generating", "waiting", "suspended")  # those of a side dialog at work


class TeamsCollector(Collector):
    """A collector that reads rows at each scrape: side dialogs at work, by an index, and the sums of all."""

    def describe(self) -> Iterable[Metric]:
        return ()  # else registering would ask the database

    def collect(self) -> Iterable[Metric]:
        try:
            return list(_from_rows())
        except DatabaseError:  # the metric dominds_rows_readable tells of it
            return ()


def _from_rows() -> Iterator[Metric]:
    working = sight.at_work(SideDialog.objects.order_by())
    states = Counter(working.values_list("dialog__state", flat=True))
    at_work = GaugeMetricFamily("dominds_side_dialogs", "Side dialogs at work, by state.", labels=["state"])
    for state in STATES:
        at_work.add_metric([state], states[state])
    yield at_work
    oldest = working.aggregate(oldest=Min("asked_at"))["oldest"]
    age = max(0.0, (timezone.now() - oldest).total_seconds()) if oldest else 0
    yield GaugeMetricFamily("dominds_oldest_side_dialog_age_seconds", "Age of the oldest task at work.", value=age)
    opened = SideDialog.objects.count()
    yield CounterMetricFamily("dominds_side_dialogs_opened", "Side dialogs that were opened.", value=opened)
    sides = Dialog._base_manager.filter(origin=Dialog.Origin.AGENT).order_by()
    usd = float(sides.aggregate(usd=sum_of_costs())["usd"])
    yield CounterMetricFamily("dominds_side_dialogs_cost_usd", "Cost of side dialogs as far as it is known.", value=usd)


def register() -> None:
    """Add these numbers to what ``/metrics`` answers."""
    REGISTRY.register(TeamsCollector())
