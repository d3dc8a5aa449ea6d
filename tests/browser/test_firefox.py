"""The Guide's story in a Firefox: an answer, a question, a rewrite, what the model sees, and undo. `make firefox`."""

import json
import os
from pathlib import Path

from django.contrib.auth.models import User

from tests.harness.browser import session_key
from tests.harness.firefox import ENTER, firefox
from tests.harness.stack import Stack

RESTS = "document.querySelector('#state[data-state=idle]')"
FIELD = "document.querySelector('#text')"


def button(words: str, within: str = "body") -> str:
    """Write the expression for the first visible button whose text begins with these words."""
    selector, begin = json.dumps(f"{within} button"), json.dumps(words)
    return (
        f"[...document.querySelectorAll({selector})].find("
        f"(one) => one.checkVisibility() && one.textContent.trim().startsWith({begin}))"
    )


def answered(words: str) -> str:
    newest = "[...document.querySelectorAll('.turn-assistant')].at(-1)"
    return f"{newest}?.textContent.includes({json.dumps(words)}) && {RESTS}"


def test_the_guide_tells_its_story(stack: Stack, person: User, tmp_path: Path) -> None:
    (tmp_path / "profile").mkdir()
    with firefox(os.environ["DOMINDS_FIREFOX"], tmp_path / "profile") as page:
        page.log_in(stack.base_url, session_key(person))
        page.go(f"{stack.base_url}/?agent=demo")
        page.click(button("Show me around"))
        page.click(button("Send"))
        page.expect(answered("Say go on"))
        page.click(FIELD)
        page.type(f"go on{ENTER}")
        page.click(button("Remember: my boat is called Kittiwake"))
        page.expect(answered("day 1"))
        for shown in ("day 2", "Look above this answer"):
            page.click(FIELD)
            page.type(f"go on{ENTER}")
            page.expect(answered(shown))
        page.click("document.querySelector('#ring-button')")
        page.expect(button("Make room"))
        page.click(button("Undo", "#context-popover"))
        page.expect("document.querySelector('.run-line')?.textContent.includes('undone')")
        page.expect("document.querySelector('.toast')?.textContent.includes('messages are back')")
        page.click(button("Details", "#context-popover"))
        page.expect("document.querySelector('#side #moment .piece')?.checkVisibility()")
