"""What is measured: a turn, pages, calls of ``/api``, pages of the admin, and sweeps."""

from collections.abc import Callable, Iterator
from functools import partial

from tests.benchmarks.growth.seeding import TABLES

# Name, address and, where it is not "person", who asks. ``page`` is the long dialog's, ``api`` the same below /api.
PAGES: tuple[tuple[str, ...], ...] = (
    ("look at the long dialog", "{page}"),
    ("its transcript, deep", "{page}older?before={half}"),
    ("its context", "{page}context/"),
    ("its pane", "{page}details/"),
    ("its calls, last page", "{page}context/?page=999999"),
    ("find in its archive", "{page}context/?q=refund"),
    ("find in it, common word", "{page}find/?q=refund"),
    ("one call", "{page}context/?at={newest}"),
    ("its statistics, /api", "{api}/statistics"),
    ("its turns, /api, deep", "{api}/turns?after={half}&limit=100"),
    ("its events, /api, deep", "{api}/events?after={double}&limit=100"),
    ("find everywhere, common word", "/find/?q=refund"),
    ("find everywhere, rare word", "/find/?q={rare}"),
    ("find everywhere, no such word", "/find/?q=zyzzyvas"),
    ("find everywhere, all, no such word", "/find/?q=zyzzyvas&all=1"),
    ("home with navigation", "/"),
    ("list of dialogs", "/dialogs/"),
    ("list of dialogs, page 20", "/dialogs/?page=20"),
    ("list, words", "/dialogs/?q=refund"),
    ("list, everybody's", "/dialogs/", "operator"),
    ("list, everybody's, last page", "/dialogs/?page=999999", "operator"),
    ("list, everybody's, words of a title", "/dialogs/?q=Dialog+77", "operator, by htmx"),
    ("list, everybody's, words of all titles and texts", "/dialogs/?q=Dialog+77&all=1", "operator, by htmx"),
    ("questions", "/q4h/"),
    ("questions, everybody's", "/q4h/", "operator"),
    ("/api/dialogs", "/api/dialogs?limit=100"),
    ("/api/dialogs, after 500", "/api/dialogs?limit=100&after={middle}"),
    ("/api/dialogs, everybody's, after 500", "/api/dialogs?limit=100&after={middle}", "operator"),
    ("statistics", "/statistics/", "operator"),
    ("statistics, a person's", "/statistics/"),
    ("operations", "/ops/", "operator"),
)
ADMIN_PAGES = (
    *((f"admin, {name.partition('_')[2]}", f"/admin/{name.replace('_', '/')}/") for name in TABLES),
    ("admin, dialog, last page", "/admin/dialogs/dialog/?p={last}"),
    ("admin, dialog, found by its id", "/admin/dialogs/dialog/?q={long}"),
    ("admin, dialog, found by words", "/admin/dialogs/dialog/?q=long"),
    ("admin, turn, of one dialog", "/admin/dialogs/turn/?q={long}"),
    ("admin, call, of one dialog", "/admin/dialogs/generation/?q={long}"),
    ("admin, snapshot, of one dialog", "/admin/health/healthsnapshot/?q={long}"),
    ("admin, snapshot, by level", "/admin/health/healthsnapshot/?level__exact=critical"),
)


def requests(turns: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is measured, by its name."""
    from django.contrib.auth.models import User
    from django.test import Client

    from dialogs.actions import expiry
    from dialogs.actions.messages import post_message
    from dialogs.extras.notices import deliveries
    from dialogs.extras.operations import dashboard
    from dialogs.models import Dialog, Generation, Turn
    from dialogs.runtime import sweeping
    from dialogs.runtime.driver import drive

    person, operator = User.objects.get(username="bench-0"), User.objects.get(username="operator")
    long = Dialog.objects.get(title="The long dialog")
    clients = {"person": Client(), "operator": Client(), "operator, by htmx": Client(headers={"HX-Request": "true"})}
    for who, client in clients.items():
        client.force_login(person if who == "person" else operator)
    others_words = Turn.objects.exclude(dialog=long).filter(dialog__owner=person).order_by("-pk")[0].text.split()
    names = {
        "long": long.pk,
        "page": f"/d/{long.pk}/",
        "api": f"/api/dialogs/{long.pk}",
        "half": turns // 2,
        "double": turns * 2,
        "newest": Generation.objects.filter(dialog=long).order_by("-pk")[0].pk,
        "rare": others_words[4],
        "middle": Dialog.objects.filter(owner=person).order_by("created_at")[500].pk,
        "last": 20_000 if turns > 10_000 else 200,
    }

    def get(address: str, who: str = "person") -> None:
        answer = clients[who].get(address)
        assert answer.status_code == 200, (address, answer.status_code, answer.content[:500])

    def turn() -> None:
        post_message(long.pk, "What now?", author=person)
        drive(long.pk)
        assert Dialog.objects.get(pk=long.pk).state == "idle"

    yield "turn, message to idle", turn
    for name, address, *reader in PAGES:
        yield name, partial(get, address.format(**names), *reader)
    for name, address in ADMIN_PAGES:
        yield name, partial(get, address.format(**names), "operator")
    yield "sweep of dialogs that are owed", sweeping.sweep
    yield "sweep of notices", deliveries.sweep
    yield "sweep of what expired", expiry.remove_expired
    yield "stuck dialogs", dashboard.stuck_dialogs
