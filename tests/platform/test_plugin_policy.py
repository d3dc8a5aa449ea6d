"""A context policy from outside the tree: installed, chosen, previewed, run, undone, and taken away again."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from dialogs.models import Agent, Dialog
from dialogs.runtime.driver import drive
from dialogs.store.change import open_change
from tests.dialogs.factories import send, write_minds
from tests.harness.browser import session_key
from tests.harness.stack import ROOT, Stack, eventually

pytestmark = pytest.mark.server

EXAMPLE = ROOT / "examples" / "keep_newest_policy"
USAGE = {"prompt_tokens": 900, "completion_tokens": 300}


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    """A folder as pip would leave it: the module, and the entry point that its pyproject.toml names."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site"
    described = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = project["entry-points"]
    lines = [line for group in points for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points[group].items()))]
    (described / "entry_points.txt").write_text("\n".join([*lines, ""]))
    shutil.copy(EXAMPLE / "keep_newest_policy.py", folder)
    return folder


class Person:
    """A browser without scripts: pages, and their forms with their tokens."""

    def __init__(self, stack: Stack, user: Any) -> None:
        cookies = {"sessionid": session_key(user)}
        self._client = httpx2.Client(base_url=stack.base_url, cookies=cookies, timeout=30, trust_env=False)

    def page(self, path: str) -> str:
        answer = self._client.get(path)
        assert answer.status_code == 200, (path, answer.status_code)
        return answer.text

    def send(self, page: str, path: str, **form: str) -> int:
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.page(page))
        assert token is not None
        return self._client.post(path, data={**form, "csrfmiddlewaretoken": token[1]}).status_code


def test_a_policy_from_outside_is_chosen_previewed_run_and_undone(
    make_stack: Callable[..., Stack], site_packages: Path, settings: Any
) -> None:
    stack = make_stack(settings={"PYTHONPATH": str(site_packages)})
    write_minds(stack.minds_dir, [{"text": "word " * 300, "usage": USAGE}], context_length=20_000)
    operator = get_user_model().objects.create_superuser("ada")
    person, api = Person(stack, operator), stack.api_as(operator)

    choose_on_the_site(person)
    dialog = Dialog.objects.get(pk=api.post("/api/dialogs", json={"agent": "keeper"}).json()["id"])
    check_seen(person, api, dialog)
    check_previewed_run_and_undone(stack, person, api, dialog)

    # run by itself
    path = f"/api/dialogs/{dialog.pk}"
    api.post(f"{path}/messages", json={"text": "Go on."})
    settled(api, path)
    by_itself = api.get(f"{path}/remediations").json()[-1]
    assert (by_itself["policy"], by_itself["reason"]) == ("keep_newest", "over 70 % of the window")

    # named by a program for one request
    text = {"model": "keeper", "messages": [{"role": "user", "content": "By a program."}]}
    answer = api.post("/v1/chat/completions", json=text, headers={"X-Dominds-Policy": "keep_newest"})
    asked = Dialog.objects.get(pk=answer.headers["X-Dominds-Dialog"])
    assert (answer.status_code, asked.context_policy) == (200, "keep_newest")
    refused = api.post("/v1/chat/completions", json=text, headers={"X-Dominds-Policy": "keep_oldest"})
    assert (refused.status_code, "keep_newest" in refused.json()["error"]["message"]) == (400, True), (
        "known ones are named"
    )

    # taken away: this process has no such policy
    for part in stack.parts:
        part.terminate()
    settings.MINDS_DIR = stack.minds_dir
    write_minds(stack.minds_dir, [{"text": "word " * 300, "usage": USAGE}], context_length=20_000)
    check_without(operator, Dialog.objects.select_related("agent").get(pk=dialog.pk))


def choose_on_the_site(person: Person) -> None:
    assert '<option value="keep_newest">newest messages</option>' in person.page("/agents/new/")
    form = {"answers_with": "test/model", "context_policy": "keep_newest", "critical_policy": "escalate"}
    assert person.send("/agents/new/", "/agents/new/", name="Keeper", priority="2", model_params="{}", **form) == 302
    assert Agent.objects.get(pk="keeper").context_policy == "keep_newest"


def check_seen(person: Person, api: Any, dialog: Dialog) -> None:
    path, page = f"/api/dialogs/{dialog.pk}", f"/d/{dialog.pk}"
    assert (api.get(path).json()["policy"], api.get(path).json()["policy_problem"]) == ("keep_newest", None)
    assert "newest messages" in person.page(f"{page}/")
    assert "Older messages go when the context exceeds 70% of the window" in person.page(f"{page}/details/")
    assert "/api/dialogs/{dialog_id}/keep-newest" in person.page("/api/openapi.json")


def check_previewed_run_and_undone(stack: Stack, person: Person, api: Any, dialog: Dialog) -> None:
    path, page = f"/api/dialogs/{dialog.pk}", f"/d/{dialog.pk}"
    # the dialog is long for a smaller window
    for number in range(10):
        api.post(f"{path}/messages", json={"text": f"message {number} " + "about the zebra " * 30})
        settled(api, path)
    assert api.get(f"{path}/remediations").json() == []
    write_minds(stack.minds_dir, [{"text": "word " * 300, "usage": USAGE}], context_length=3_000)
    before = api.get(f"{path}/context").json()["units"]
    preview = api.get(f"{path}/context?preview=keep-newest").json()["preview"]
    assert preview["problem"] is None
    assert preview["est_after"] <= 1_500  # half of the window
    assert preview["est_before"] > 2_100  # 70 % of it
    shown = person.page(f"{page}/context/?preview=keep_newest")
    assert "Drop older messages" in shown
    assert f"{len(preview['removed'])} messages" in shown and f"→ {preview['est_after']:,} tokens" in shown

    # run by hand, as the preview said, and undone
    shown_at, action = f"{page}/context/?preview=keep_newest", f"{page}/context/keep-newest/"
    assert person.send(shown_at, action, confirmed="yes") == 302
    (run,) = eventually(lambda: api.get(f"{path}/remediations").json())
    assert (run["policy"], run["reason"], run["strategies"]) == ("keep_newest", "asked for by hand", ["keep_newest"])
    assert [unit["id"] for unit in run["removed"]] == [unit["id"] for unit in preview["removed"]]
    assert (run["est_before"], run["est_after"]) == (preview["est_before"], preview["est_after"])
    settled(api, path)
    assert "Older messages dropped" in person.page(f"{page}/")
    assert api.post(f"{path}/remediations/{run['id']}/undo").json()["undone"]
    assert api.get(f"{path}/context").json()["units"] == before


def check_without(operator: Any, dialog: Dialog) -> None:
    """The dialog goes on without compaction, and everywhere it is said why."""
    reason = "The policy keep_newest is not installed, so nothing is compacted."
    browser = Client()
    browser.force_login(operator)
    page = browser.get(f"/d/{dialog.pk}/").content.decode()
    assert reason in page
    assert reason in browser.get(f"/d/{dialog.pk}/details/").content.decode()
    assert "Context rewritten (keep_newest)" in page
    assert browser.get(f"/d/{dialog.pk}/context/").status_code == 200
    assert browser.get("/ops/").status_code == 200
    message = browser.get(f"/api/dialogs/{dialog.pk}").json()
    assert (message["policy"], message["policy_problem"]) == ("none", reason)
    assert reason in browser.get("/admin/dialogs/agent/").content.decode()
    form = browser.get("/agents/keeper/").content.decode()
    assert '<option value="keep_newest" selected>keep_newest (not installed)</option>' in form
    send(dialog, "Are you there?")
    assert (dialog.state, dialog.turns.latest("seq").role) == ("idle", "assistant")
    with open_change(dialog.pk) as change:
        change.dialog.requested_rewrite = "keep_newest"  # asked for just before it was taken away
    drive(dialog.pk)
    dialog.refresh_from_db()
    assert (dialog.requested_rewrite, dialog.failure) == (
        "",
        "The rewrite that was asked for (keep_newest) is not installed any more.",
    )


def settled(api: httpx2.Client, path: str) -> None:
    eventually(lambda: api.get(path).json()["state"] == "idle")


def test_the_examples_own_tests_pass() -> None:
    """As its author runs them: from its folder, with Dominds installed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "pyproject.toml", "-p", "no:cacheprovider"],
        cwd=EXAMPLE,
        env={"PYTHONPATH": f"{ROOT}:{EXAMPLE}", "PATH": "", "HOME": str(EXAMPLE.parent)},
        check=False,  # with its output in the message
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "14 passed" in done.stdout
