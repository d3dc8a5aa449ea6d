"""One stack of real processes for all browser tests, with scripted agents that are slow enough to watch."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.auth.models import User
from django.db import connection
from playwright.sync_api import BrowserContext, Page, expect

from dialogs.actions import messages
from dialogs.models import Dialog
from tests.dialogs.factories import UserFactory
from tests.harness.browser import session_key
from tests.harness.live import orm_on
from tests.harness.postgres import PostgresServer
from tests.harness.stack import Stack, eventually, running

expect.set_options(timeout=15_000)

LONG = "".join(
    f"## Part {number} 😀\n\nSome *words* with `code` and [a link](https://example.org/{number}).\n\n"
    f"```python\ndef part_{number}(x: int) -> int:\n    return x + {number}  # <b>not bold</b>\n```\n\n"
    f"- one of {number}\n- two of {number}\n\n"
    for number in range(12)
)
HOSTILE = (
    "<script>window.hacked = 1</script><img src=https://evil.example/x.png onerror='window.hacked=1'>\n\n"
    "![x](https://evil.example/y.png) [x](javascript:window.hacked=1) <b hx-get='/d/new/' hx-trigger='load'>b</b>\n\n"
    "```html onload=alert(1)\n<script>window.hacked = 1</script>\n```\n"
)
PLANS_SUMMARY = (
    "The weekly notes were about the importer: the parser was rewritten, exports were checked against the old ones, "
    "and the team decided to keep the nightly run. Never delete the raw files."
)
LIST = "".join(
    f"{number}. **Step {number}** of `the plan`:\n   - one <img src=x onerror='window.hacked=1'>\n   - *two* "
    "[x](javascript:alert(1))\n"
    for number in range(1, 13)
)
TABLE = (
    "Prices | a piece\n:--|--:\n"
    + "".join(
        f"| **No {n}** | `{n}` <img src=x onerror='window.hacked=1'> [x](javascript:alert(1)) |\n" for n in range(1, 25)
    )
    + "\n| a line | with bars\nand no table\n\n| Wide | "
    + " | ".join(f"column {n}" for n in range(1, 20))
    + " |\n|"
    + "---|" * 20
    + "\n| one \\| two |\n"
)
SOLUTION = (
    "The area is $\\frac{1}{2} b h$, so:\n\n$$A = \\sum_{i=1}^{n} a_i^2$$\n\n- one **half**\n- of `b * "
    "h`\n\nThat is all.\n"
)
SCRIPTS: dict[str, dict[str, Any]] = {
    "long": {"chunk_chars": 20, "chunk_delay_ms": 60, "steps": [{"text": LONG}]},
    "list": {"chunk_chars": 14, "chunk_delay_ms": 40, "steps": [{"text": LIST}]},
    "table": {"chunk_chars": 14, "chunk_delay_ms": 24, "steps": [{"text": TABLE}]},
    "short": {"steps": [{"text": "A short answer."}]},
    "echo": {"steps": [{"text": "{{last_user}}"}]},
    "hostile": {"chunk_chars": 7, "chunk_delay_ms": 5, "steps": [{"text": HOSTILE}]},
    "asks": {
        "steps": [
            {
                "match": "^Please offer",
                "tool_calls": [
                    {"name": "ask_human", "arguments": {"question": "EUR or USD?", "choices": ["EUR", "USD"]}}
                ],
            },
            {
                "match": "^Please ask",
                "tool_calls": [{"name": "ask_human", "arguments": {"question": "Which currency?"}}],
            },
            {"text": "Thank you."},
        ]
    },
    "looks": {
        "steps": [
            {
                "match": "^Look",
                "text": "Let me look.",
                "tool_calls": [{"name": "search_archive", "arguments": {"query": f"part {n}"}} for n in range(3)],
            },
            {"text": "I have looked."},
        ]
    },
    "counts": {
        "steps": [
            {
                "match": "^Count",
                "text": "I count.",
                "tool_calls": [
                    {"name": "desk_count", "arguments": {"steps": steps, "seconds": 0.5}} for steps in (8, 60)
                ],
            },
            {"text": "I have counted."},
        ]
    },
    "notes": {
        "steps": [
            {
                "match": "^Note",
                "text": "I note it.",
                "tool_calls": [{"name": "desk_remember", "arguments": {"text": "the boat leaves at nine"}}],
            },
            {"text": "Thank you."},
        ]
    },
    "solves": {
        "chunk_chars": 12,
        "chunk_delay_ms": 80,
        "steps": [{"text": SOLUTION, "reasoning": "Half of the product of base and height, I suppose. " * 4}],
    },
    "lights": {
        "steps": [
            {"match": f"(?m)^{tokens}$", "text": "Noted.", "usage": {"prompt_tokens": tokens, "completion_tokens": 3}}
            for tokens in (50, 100_001, 115_201)
        ]
        + [{"match": "(?m)^none$", "text": "Noted.", "usage": "none"}]
    },
    "refuses": {"steps": [{"text": "No.", "usage": {"prompt_tokens": 950, "completion_tokens": 2}}]},
    "relents": {
        "steps": [
            {"match": "Re-entry package", "text": "Gladly.", "usage": {"prompt_tokens": 60, "completion_tokens": 2}},
            {"text": "No.", "usage": {"prompt_tokens": 950, "completion_tokens": 2}},
        ]
    },
    "fills": {"steps": [{"text": "A sentence that takes room. " * 60}]},
    "plans": {
        "chunk_chars": 200,
        "steps": [
            {"match": r"\AWeek \d+ notes|Week \d+ notes.*Week \d+ notes", "text": PLANS_SUMMARY},
            {"text": "Noted; I keep the list in mind."},
        ],
    },
}
SLOW_TOOLS = Path(__file__).parent.parent / "dialogs" / "tools" / "mcp_server.py"
# From now on, layout shifts as Chromium scores them, and what moved from where to where.
SHIFTS = """() => {
    window.shifts = [];
    const name = (node) => node && (node.nodeType === 1 ? node.cloneNode().outerHTML : node.textContent).slice(0, 120);
    const place = (box) => [box.x, box.y, box.width, box.height].map(Math.round).join(" ");
    const move = ({ node, previousRect, currentRect }) => [name(node), place(previousRect), place(currentRect)];
    new PerformanceObserver((list) => {
        for (const { value, sources } of list.getEntries())
            window.shifts.push([value, sources.map(move)]);
    }).observe({ type: "layout-shift" });
}"""
# Only what is wrong crosses over: what passed is fifty times as much.
VIOLATIONS = """() => axe.run({ resultTypes: ["violations"], preload: false })
    .then(({ violations }) => violations.map(({ id }) => id))"""
KEY_VARIABLE = "BROWSER_TEST_API_KEY"  # for doubles of providers that a test starts
LIMITS = {"lights": 128_000, "refuses": 1_000, "relents": 1_000, "fills": 2_000}


def pytest_addoption(parser: pytest.Parser) -> None:
    slow = parser.getgroup("slow machines", "Browser tests pass with any of these.")
    slow.addoption("--slow-browser", type=float, default=1, metavar="TIMES", help="Slow the processor of pages down")
    slow.addoption("--slow-network", type=float, default=0, metavar="MS", help="Delay each answer, but not the socket")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Count a test's own seconds alone: the first one starts the stack, whose parts have limits of their own, and all
    others would fail with it."""
    for item in items:
        if Path(__file__).parent in item.path.parents and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(func_only=True))


@pytest.fixture
def context(context: BrowserContext, pytestconfig: pytest.Config) -> BrowserContext:
    """Its pages are as slow as the options say."""
    times, latency_ms = (pytestconfig.getoption(name) for name in ("slow_browser", "slow_network"))

    def slow_down(page: Page) -> None:
        session = context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": times})
        session.send("Network.enable")
        session.send(
            "Network.emulateNetworkConditions",
            {"offline": False, "latency": latency_ms, "downloadThroughput": -1, "uploadThroughput": -1},
        )

    if times > 1 or latency_ms:
        context.on("page", slow_down)
    return context


@pytest.fixture(scope="session")
def browser_stack(postgres: PostgresServer, django_db_blocker: Any) -> Iterator[Stack]:
    """The stack behind ``stack``; use that."""
    stack = Stack.on_new_database(
        postgres, "dominds_browser", settings={KEY_VARIABLE: "k-browser-0123456789", "DOMINDS_PRIVATE_IMAGES": "on"}
    )
    stack.minds_dir.mkdir(parents=True, exist_ok=True)
    for name, script in SCRIPTS.items():
        (stack.minds_dir / f"{name}.yaml").write_text(json.dumps(script, ensure_ascii=False))
    models = {
        name: {"script": f"{name}.yaml", "context_length": LIMITS.get(name, 200_000), "supports_tool_choice": True}
        for name in SCRIPTS
    }
    models["table"]["modalities"] = ["text"]
    models["fills"] |= {"optimal_max_tokens": 1_900, "critical_max_tokens": 1_950}
    members: dict[str, dict[str, Any]] = {
        name: {"name": name.capitalize(), "provider": "lab", "model": name} for name in SCRIPTS
    }
    members["fills"]["context_policy"] = "none"
    members["plans"] |= {"context_policy": "breaking", "context_limit": 3_500, "priority_areas": ["To Do List"]}
    members["plans"]["prepare_rewrites"] = False  # its rewrites are looked at while they are made
    members["counts"]["tools"] = members["notes"]["tools"] = ["mcp:desk"]
    members["notes"]["tool_approval"] = "changes"
    desk = {"command": sys.executable, "args": [str(SLOW_TOOLS), "stdio"]}
    (stack.minds_dir / "mcp.yaml").write_text(json.dumps({"servers": {"desk": desk}}))
    llm = {"providers": {"lab": {"name": "Lab", "apiType": "scripted", "models": models}}}
    (stack.minds_dir / "llm.yaml").write_text(json.dumps(llm))
    (stack.minds_dir / "team.yaml").write_text(json.dumps({"members": members}))
    with running(stack) as started:
        with orm_on(started.database_url, django_db_blocker):
            _wait_for_the_worker(started)
        yield started


def _wait_for_the_worker(stack: Stack) -> None:
    """The web server is ready before the worker is; what browser tests time should not be that."""
    user = UserFactory.create(is_superuser=True, is_staff=True)
    connection.close()
    with stack.api_as(user) as api:
        dialog = api.post("/api/dialogs", json={"agent": "short"}).json()
        api.post(f"/api/dialogs/{dialog['id']}/messages", json={"text": "Are you there?"})
        eventually(lambda: api.get(f"/api/dialogs/{dialog['id']}").json()["state"] == "idle", seconds=90)


@pytest.fixture
def stack(browser_stack: Stack, django_db_blocker: Any) -> Iterator[Stack]:
    """The stack, with the ORM of this process on its database."""
    with orm_on(browser_stack.database_url, django_db_blocker):
        yield browser_stack
        connection.close()


@pytest.fixture
def person(stack: Stack) -> User:
    """Somebody new."""
    return UserFactory.create()


Scheme = Literal["dark", "light"]
LogIn = Callable[[BrowserContext, User], None]
Opener = Callable[[str], Dialog]  # takes the agent


@pytest.fixture
def log_in(stack: Stack) -> LogIn:
    def set_cookie(context: BrowserContext, user: User) -> None:
        context.add_cookies([{"name": "sessionid", "value": session_key(user), "url": stack.base_url}])

    return set_cookie


@pytest.fixture
def complaints(page: Page) -> Iterator[list[str]]:
    """What the browser complained about: errors of scripts, refusals by the content policy. Must stay empty."""
    results: list[str] = []
    page.on("pageerror", lambda error: results.append(f"script: {error}"))
    page.on("console", lambda message: results.append(message.text) if _is_ours(message.text, message.type) else None)
    yield results
    assert not results


def _is_ours(text: str, kind: str) -> bool:
    return kind == "error" and not re.search(r"Failed to load resource|WebSocket connection", text)


@pytest.fixture
def open_dialog(stack: Stack, person: User, page: Page, log_in: LogIn) -> Opener:
    """``open_dialog("long")``: a new dialog with that agent, shown in ``page``."""

    def open_it(agent: str) -> Dialog:
        dialog = messages.create_dialog(person, agent)
        connection.close()
        log_in(page.context, person)
        page.goto(f"{stack.base_url}/d/{dialog.pk}/")
        expect(page.locator("#connection")).to_have_attribute("data-state", "live")
        return dialog

    return open_it


def send(page: Page, text: str) -> None:
    """Once the message before has left the composer, which the socket may be faster than."""
    expect(page.locator("#text")).to_have_value("")
    page.fill("#text", text)
    page.press("#text", "Enter")


def kept(page: Page, text: str) -> None:
    """Wait until the draft is in the tab's memory: half a second after the last key."""
    drafts = "Object.values(sessionStorage)"
    eventually_on(page, lambda: text in page.evaluate(drafts))


def assert_nothing_moved(page: Page, most: float = 0.05) -> None:
    """Since ``SHIFTS`` was evaluated; Chromium calls 0.1 good."""
    shifts: list[tuple[float, list[list[str]]]] = page.evaluate("window.shifts")
    assert sum(value for value, _ in shifts) < most, "\n".join(map(str, shifts))


def eventually_on(page: Page, claim: Callable[[], Any], *, scroll_px: int = 0, seconds: float = 20) -> Any:
    """``eventually``, while Playwright tells of what the page does, or while somebody scrolls."""

    def answer() -> Any:
        if scroll_px:
            page.mouse.wheel(0, scroll_px)
        page.wait_for_timeout(100 if scroll_px else 20)
        return claim()

    return eventually(answer, seconds)


def check_axe(page: Page) -> None:
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    assert page.evaluate(VIOLATIONS) == []


def answered(page: Page, times: int = 1) -> None:
    """Wait for so many complete answers, and for the dialog to rest."""
    expect(page.locator(".turn-assistant[data-status=complete]")).to_have_count(times, timeout=30_000)
    expect(page.locator("#state")).to_have_attribute("data-state", "idle")
    expect(page.locator("#live")).to_have_count(0)
