"""The product without any extension, and with one from outside the tree."""

import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth import get_user_model

from dialogs.models import Delivery, Question
from tests.harness.browser import session_key
from tests.harness.stack import ROOT, Stack, eventually

pytestmark = pytest.mark.server

EXAMPLE = ROOT / "examples" / "waiting_times"
PAGES = (
    "/",
    "/dialogs/",
    "/q4h/",
    "/settings/",
    "/settings/costs/",
    "/settings/site/",
    "/settings/password/",
    "/models/",
    "/agents/",
    "/people/",
    "/admin/",
    "/glossary/",
)
ELSEWHERE = ("/import/", "/ops/", "/statistics/", "/push-worker.js", "/login/callback/", "/waiting-times/")


@pytest.fixture
def site_packages(tmp_path: Path) -> Path:
    """A folder as pip would leave it: the package, and the entry point that its pyproject.toml names."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    folder = tmp_path / "site"
    described = folder / "waiting_times-1.0.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: waiting-times\nVersion: 1.0.0\n")
    points = project["entry-points"]
    lines = [line for group in points for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points[group].items()))]
    (described / "entry_points.txt").write_text("\n".join([*lines, "lost = no_such_module", ""]))
    shutil.copytree(EXAMPLE / "waiting_times", folder / "waiting_times")
    return folder


def browser_of(stack: Stack, user: Any) -> httpx2.Client:
    cookies = {"sessionid": session_key(user)}
    return httpx2.Client(base_url=stack.base_url, cookies=cookies, timeout=30, trust_env=False)


def turns_after(api: Any, path: str, text: str, state: str = "idle") -> list[dict[str, Any]]:
    api.post(f"{path}/messages", json={"text": text})
    eventually(lambda: api.get(path).json()["state"] == state, 30)
    turns: list[dict[str, Any]] = api.get(f"{path}/turns").json()
    return turns


def test_the_core_alone_chats_asks_and_shows_its_pages(make_stack: Callable[..., Stack]) -> None:
    stack = make_stack(settings={"DOMINDS_EXTRAS": "none"})
    stack.sync_agents()
    stack.write_minds()
    ada = get_user_model().objects.create_superuser("ada")
    api, browser = stack.api_as(ada), browser_of(stack, ada)

    path = f"/api/dialogs/{api.post('/api/dialogs', json={'agent': 'demo'}).json()['id']}"
    assert turns_after(api, path, "Who are you?")[-1]["role"] == "assistant"
    page = path.replace("/api/dialogs", "/d")
    for address in (*PAGES, f"{page}/", f"{page}/context/", f"{page}/health/", f"{page}/export.md"):
        assert browser.get(address, follow_redirects=True).status_code == 200, address
    for address in (*ELSEWHERE, f"{page}/timeline/", f"{page}/sharing/"):
        assert browser.get(address).status_code == 404, address
    assert (api.get("/v1/models").status_code, api.get(f"{path}/timeline").status_code) == (404, 404)

    asking = f"/api/dialogs/{api.post('/api/dialogs', json={'agent': 'demo-asks'}).json()['id']}"
    turns_after(api, asking, "Ask me", "waiting")
    question = Question.objects.get()
    assert api.post(f"/api/questions/{question.pk}/answer", json={"text": "Yes."}).status_code == 200
    eventually(lambda: api.get(asking).json()["state"] == "idle", 30)
    assert not Delivery.objects.exists()


def test_one_from_outside_adds_a_page_an_entry_and_a_call(
    make_stack: Callable[..., Stack], site_packages: Path
) -> None:
    stack = make_stack(settings={"PYTHONPATH": str(site_packages)})
    stack.sync_agents()
    stack.write_minds()
    ada = get_user_model().objects.create_superuser("ada")
    api, browser = stack.api_as(ada), browser_of(stack, ada)
    path = f"/api/dialogs/{api.post('/api/dialogs', json={'agent': 'demo-asks'}).json()['id']}"
    turns_after(api, path, "Ask me", "waiting")
    question = Question.objects.get()
    assert api.get("/api/waiting-times").json() == []
    api.post(f"/api/questions/{question.pk}/answer", json={"text": "Yes."})

    (waited,) = api.get("/api/waiting-times").json()
    assert waited["question"] == str(question.pk) and 0 <= waited["minutes"] < 2
    assert "/api/waiting-times" in api.get("/api/openapi.json").json()["paths"]
    assert re.search(rf"/q4h/{question.pk}/", browser.get("/waiting-times/").text)
    assert 'href="/waiting-times/"' in browser.get("/").text
    assert browser.get("/ops/").status_code == 200, "ours run beside it"
