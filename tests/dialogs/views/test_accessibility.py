"""What axe finds on every kind of page, by day on a desk, by night on a phone, folded open. Nothing."""

import socket
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from django.contrib.auth.models import User
from django.db import connections
from django.urls import resolve, reverse
from playwright.sync_api import Page, ViewportSize

from dialogs.accounts.people import link_of
from dialogs.actions.questions import ASK_HUMAN
from dialogs.actions.sharing import token_of
from dialogs.extras.notices import question_mail
from dialogs.models import Dialog, Question
from dominds.oidc.registration import Registration
from remediation.models import RemediationRun
from tests.dialogs.browsing import ONLY_POST, routes
from tests.dialogs.conftest import Script
from tests.dialogs.every_state import Zoo, operator
from tests.dialogs.extras.teams.leading import make_lead
from tests.doubles.local_servers import OllamaDouble
from tests.harness.browser import session_key

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(900)]

DESK: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}
LOOKS: tuple[tuple[ViewportSize, Literal["light", "dark"]], ...] = ((DESK, "light"), (PHONE, "dark"))
RICH = ("rewritten", "with tools")  # those whose other pages hold the most
# Dialogs whose pages hold what no other's does.
DISTINCT = {
    *("formatted", "long question", "lead", "empty", "answered", "generating", "waiting", "suspended", "refused"),
    *("archived", "rewritten", "with tools", "with files", "without a model", "branched"),
}
OFTEN = 3
WIDE = "a long line of code without an end = " * 12
FORMATTED = (
    f"# Plan\n\n```python\n{WIDE}\n```\n\n| {' | '.join('a wide column' for _ in range(20))} |\n|{'---|' * 20}\n"
)
ASKS_LONG = {"tool_calls": [{"name": ASK_HUMAN, "arguments": {"question": "Which of these? " * 200}}]}
OPEN = """() => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
    for (const moving of document.getAnimations()) moving.finish();
}"""
# A number for each text that is shown: of what its contrast is computed from, which is its own style, and what lies
# behind it. An element that paints nothing and stays in its place lies behind no text.
STYLES = """() => {
    const hash = looks => {
        let number = 0n;
        for (const letter of looks)
            number = BigInt.asUintN(64, (number ^ BigInt(letter.codePointAt(0))) * 1099511628211n);
        return String(number);
    };
    const behind = new Map([[null, 0]]);
    const backdrop = element => {
        if (!behind.has(element)) {
            const {backgroundColor, backgroundImage, opacity, position} = getComputedStyle(element);
            const paints = [backgroundColor, backgroundImage, opacity, position].join();
            const outer = backdrop(element.parentElement);
            behind.set(element, paints === "rgba(0, 0, 0, 0),none,1,static" ? outer : hash([outer, paints].join()));
        }
        return behind.get(element);
    };
    const number = element => {
        const style = getComputedStyle(element);
        const off = element.closest(":disabled, [aria-disabled=true], [aria-hidden=true]") !== null;
        const field = element.matches("input, select, textarea");
        const looks = [field, off, style.color, style.fontSize, style.fontWeight, style.textShadow];
        return hash([backdrop(element), ...looks].join());
    };
    const isText = node => node.nodeType === Node.TEXT_NODE;
    const own = element => [...element.childNodes].filter(isText).map(node => node.data);
    const says = element => element.matches("input, select, textarea") || own(element).join("").trim().length > 1;
    const shown = element => element.checkVisibility({opacityProperty: true, visibilityProperty: true});
    window.styleOf = number;
    return [...new Set([...document.body.querySelectorAll("*")].filter(says).filter(shown).map(number))];
}"""
# What is wrong, and the styles of texts whose contrast could not be told. No more crosses over:
# what passed is fifty times as much.
RUN = """async rules => {
    const options = {resultTypes: ["violations", "incomplete"], preload: false, elementRef: true, rules};
    const results = await axe.run(options);
    const untold = results.incomplete.filter(rule => rule.id === "color-contrast").flatMap(rule => rule.nodes);
    const wrong = rule => rule.nodes.map(({target, html, failureSummary: why}) =>
        `${rule.id}: ${target} ${html.slice(0, 160)} ${why.slice(0, 300)}`);
    return [results.violations.flatMap(wrong), untold.map(node => window.styleOf(node.element))];
}"""


def made(script: Script) -> tuple[dict[str, Dialog], User]:
    """In a thread of its own: the product runs event loops, and Playwright has one in this thread."""

    def make() -> tuple[dict[str, Dialog], User]:
        try:
            zoo = Zoo(script)
            formatted = {"formatted": zoo.talk("one", step={"text": FORMATTED})}
            asked = {"long question": zoo.talk("Import it", step=ASKS_LONG)}
            lead = {"lead": make_lead(zoo.talk("one"))}
            return {**formatted, **asked, **lead, **zoo.dialogs()}, operator()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(make).result()


def pages_of(dialogs: dict[str, Dialog]) -> Iterator[str]:
    yield from tuple(
        """
        / /dialogs/ /dialogs/?q=nothing /dialogs/?state=archived /find/?q=the /settings/ /settings/context-display/
        /settings/templates/ /settings/costs/ /settings/keys/ /settings/password/ /settings/site/ /settings/limits/
        /agents/ /agents/new/ /tool-servers/ /people/ /models/ /models/connect/ /models/connected/silent/ /q4h/ /ops/
        /statistics/ /import/ /glossary/ /dialogs/?folder=Harbour+dues
        """.split()
    )
    shared = dialogs["answered question"]
    yield from (
        f"/agents/{shared.agent_id}/",
        f"/agents/{shared.agent_id}/about/",
        f"/people/{shared.owner_id}/",
        f"/people/groups/{shared.group_id}/",
    )
    yield from ("/invited/1/x/", f"/invited/{shared.owner_id}/{link_of(shared.owner)}/")
    yield from ("/models/test/model/", "/q4h/?tab=answered", "/no-such-page/")
    for name, dialog in dialogs.items():
        here = f"/d/{dialog.pk}/"
        if name in DISTINCT:
            yield here
        if name in RICH:
            yield f"{here}find/?q=message"
            yield from (f"{here}context/", f"{here}context/?preview=prune", f"{here}context/?q=message")
            yield from (f"{here}archive/{run.pk}/" for run in RemediationRun.objects.filter(dialog=dialog)[:1])
            for turn in dialog.turns.filter(generation__isnull=False)[:1]:
                newest = dialog.generations.latest("pk").pk
                yield f"{here}recalled/{turn.generation_id}/"
                yield from (f"{here}context/?at={newest}", f"{here}context/?at={newest}&with={turn.generation_id}")
        if dialog.link:
            yield from (f"{here}sharing/", reverse("shared", args=[token_of(dialog)]))
        if name == "lead":
            yield f"{here}team/task/"
        if name == "branched":
            yield from (f"{here}turn/{seq}/actions/" for seq in (1, 2))
    yield from (
        f"/q4h/{question.pk}/" for question in Question.objects.order_by("kind", "state").distinct("kind", "state")
    )
    asked = dialogs["waiting"].questions.get()
    yield from (
        question_mail.link_to(asked, asked.dialog.owner),
        f"/q4h/{asked.pk}/by-mail/",
        f"/q4h/{asked.pk}/by-mail/old/",
    )


@dataclass
class Axe:
    """``styles`` are those of texts whose contrast was told, which takes as long as all other rules together: it is
    computed again where a text has another one, and on no other page. ``untold`` counts where axe could not tell: after
    three times, such as for the header of each page, nobody asks again."""

    page: Page
    styles: set[str] = field(default_factory=set)
    untold: Counter[str] = field(default_factory=Counter)

    def problems(self) -> list[str]:
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE_SCRIPT)
        styles = set(self.page.evaluate(STYLES))
        rules = {
            "color-contrast": {"enabled": not styles <= self.styles},
            "label-content-name-mismatch": {"enabled": True},
        }
        problems, untold = self.page.evaluate(RUN, rules)
        self.untold.update(set(untold))
        self.styles |= {style for style in styles if style not in untold or self.untold[style] >= OFTEN}
        return list(problems)


def refused_limits(axe: Axe, base: str) -> list[str]:
    """The page with an error at each field."""
    page = axe.page
    page.goto(f"{base}/settings/limits/")
    page.evaluate(
        "for (const field of document.querySelectorAll('.field input, td input:not([type=checkbox])')) { field.type = "
        "'text'; field.value = 'x' }"
    )
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Not saved.").wait_for()
    return axe.problems()


def connecting(axe: Axe, base: str, settings: Any) -> list[str]:
    """The page with a server on this machine, and what one at a typed address answered."""
    page = axe.page
    with OllamaDouble() as double:
        settings.LOCAL_SERVERS = [("ollama", double.url)]
        page.goto(f"{base}/models/connect/")
        page.get_by_label("Address").fill(double.url)
        page.get_by_role("button", name="Test").click()
        page.get_by_text("answered: 1 model").wait_for()
        return axe.problems()


def refused_sign_in(axe: Axe, base: str, settings: Any) -> list[str]:
    """The login page with a provider's button, and why it led nowhere."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        closed = taken.getsockname()[1]
    settings.OIDC_PROVIDERS = (Registration("Harbour ID", f"http://127.0.0.1:{closed}", "dominds", "secret"),)
    axe.page.goto(f"{base}/login/provider/")
    axe.page.get_by_text("cannot be reached now").wait_for()
    settings.OIDC_PROVIDERS = ()
    return axe.problems()


def popovers(axe: Axe, address: str, *names: str) -> list[str]:
    """Each part that a button shows above the page."""
    page = axe.page
    page.goto(address)
    results = []
    for name in names:
        page.evaluate("name => { document.getElementById(name).showPopover() }", name)
        results += [f"{name}: {problem}" for problem in axe.problems()]
        page.evaluate("name => document.getElementById(name).hidePopover()", name)
    return results


# What is no page, beside what only takes a POST: pieces, files, programs' addresses, and former ones.
NO_PAGES = set(
    """
    older frames predictions details import-progress export-markdown export-json whole-turn place image shared-image mcp
    export-own export-person agent-tools team-panel dialog-menu dialog-models remote-image sign-in sign-in-callback
    push-worker archive call compare context-text health timeline usage
    """.split()
)


def unseen(dialogs: dict[str, Dialog]) -> set[str | None]:
    """Names of pages that are not among those that axe sees."""
    seen = {resolve(urlsplit(address).path).url_name for address in pages_of(dialogs) if "no-such" not in address}
    named = {route.name for route in routes()}
    return (named - NO_PAGES - ONLY_POST - {"login", "setup"}) ^ seen


def test_axe_finds_nothing_on_any_page(script: Script, live_server: object, page: Page, settings: Any) -> None:
    base, problems, axe = str(live_server), list[str](), Axe(page)
    page.goto(f"{base}/setup/")
    problems += [f"setup: {problem}" for problem in axe.problems()]
    dialogs, person = made(script)
    assert not unseen(dialogs)
    page.goto(f"{base}/login/")
    page.get_by_role("button", name="Log in").wait_for()
    problems += [f"login: {problem}" for problem in axe.problems()]
    problems += [f"sign-in: {problem}" for problem in refused_sign_in(axe, base, settings)]
    page.context.add_cookies([{"name": "sessionid", "value": session_key(person), "url": base}])
    page.evaluate("localStorage.setItem('dominds:side', 'open')")  # a dialog's details, beside it on the desk
    for address in pages_of(dialogs):
        page.set_viewport_size(DESK)
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        page.goto(base + address)
        for size, scheme in LOOKS:
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.evaluate(OPEN)
            problems += [f"{address} {scheme}: {problem}" for problem in axe.problems()]
    problems += [f"refused: {problem}" for problem in refused_limits(axe, base)]
    problems += [f"connecting: {problem}" for problem in connecting(axe, base, settings)]
    for address, names in (
        (f"/d/{dialogs['rewritten'].pk}/", ("nav", "keys", "context-popover", "dialog-menu", "model-choice", "side")),
        ("/", ("nav", "agent-choice", "appearance")),
    ):
        problems += [f"popovers: {problem}" for problem in popovers(axe, base + address, *names)]
    page.keyboard.press("Control+k")
    page.get_by_role("option", name="Theme: dark").wait_for()
    problems += [f"palette: {problem}" for problem in axe.problems()]
    page.goto(f"{base}/d/{dialogs['answered'].pk}/")
    page.fill("#text", "/")
    page.get_by_role("option", name="/room").wait_for()
    problems += [f"commands: {problem}" for problem in axe.problems()]
    assert not problems, "\n".join(problems)
