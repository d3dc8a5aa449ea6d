"""From the commit of an event to the change on the page, in Chromium: ``python -m tests.benchmarks.page``.

A notice is committed while a dialog's page is open; the page's own clock says when its element appeared. Both clocks
are the machine's, so the difference is the way through Redis, the web process, the socket and the DOM.
"""

import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles

from tests.benchmarks.rig import load, progress, report, rig, table

WATCH = """
    window.seen = {};
    new MutationObserver(() => {
        for (const row of document.querySelectorAll('[id^="turn-"]'))
            if (!(row.id in window.seen)) window.seen[row.id] = performance.timeOrigin + performance.now();
    }).observe(document.body, {childList: true, subtree: true});
"""


def commit_turn(dialog_id: object, number: int) -> tuple[int, float]:
    """The turn's seq, and when its transaction had been committed, in milliseconds of the epoch."""
    from dialogs.store.change import open_change

    with open_change(dialog_id) as change:  # type: ignore[arg-type]
        turn = change.turn("assistant", "complete", text=f"Number {number} of *some* words.")
    return turn.seq, time.time() * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=40)
    asked = parser.parse_args()
    with rig(workers=0) as running, progress() as bar, ThreadPoolExecutor(1) as rows:
        from django.conf import settings
        from playwright.sync_api import sync_playwright

        from dialogs.actions.messages import create_dialog
        from tests.harness.browser import FLAGS, chromium, session_key

        settings.REDIS_URL = running.stack.redis.url  # the stack's web process is to be poked
        owner = running.people(1)[0]
        dialog, cookie = create_dialog(owner, running.agent("quick").pk, "Page"), session_key(owner)
        task, ages = bar.add_task("events", total=asked.events), []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
            context = browser.new_context()
            context.add_cookies([{"name": "sessionid", "value": cookie, "url": running.stack.base_url}])
            page = context.new_page()
            page.goto(f"{running.stack.base_url}/d/{dialog.pk}/")
            page.wait_for_timeout(2_000)
            page.evaluate(f"() => {{{WATCH}}}")
            for number in range(asked.events):
                # The ORM away from this thread: Playwright runs an event loop in it.
                seq, committed = rows.submit(commit_turn, dialog.pk, number).result()
                page.wait_for_function(f"() => 'turn-{seq}' in window.seen", timeout=20_000)
                ages.append(page.evaluate(f"() => window.seen['turn-{seq}']") - committed)
                bar.advance(task)
            browser.close()
    cut = quantiles(ages[2:], n=100)
    cells = [[f"{len(ages)}", f"{cut[49]:.0f}", f"{cut[94]:.0f}", f"{max(ages[2:]):.0f}", "300"]]
    head = ["events", "p50, ms", "p95, ms", "most, ms", "aim, ms"]
    report(f"## From commit to page ({load()})\n\n" + table(head, cells))


if __name__ == "__main__":
    main()
