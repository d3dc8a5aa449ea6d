// Switching between versions of a turn without loading a page: the page of the other branch is fetched, the parts that
// differ are replaced, and the turn stays where it is in the window. The links also work without scripts.
import { announce, applyPieces, localTimes } from "./page.js";
import { readTurns } from "./sidebar.js";
import { tr } from "./words.js";

const PIECES = [
  "heading",
  "subtitle",
  "state",
  "dialog-menu",
  "breaking",
  "activity",
  "banner",
  "queued",
  "sending-error",
  "composer-state",
  "model-button",
  "ring",
  "context-popover",
  "model-choice",
  "details",
  "reminders-panel",
];
const FRESH_MS = 20_000; // how long a page fetched in advance is used; the socket brings the events since
const KEPT = 6; // pages

/** Set up the links. `leave` is called before the other branch is put in place, `arrive` after it. */
export function startVersions({ root, scroller, entries, leave, arrive }) {
  const pages = new Map(); // by address, the time of the request and the promise of the page
  const who = (page) => page.querySelector("#text").labels?.[0].dataset.who;
  // A step back in the history keeps the place in the window as a click does, and does not scroll to the hash.
  history.scrollRestoration = "manual";
  let shown = location.pathname + location.search;
  let newest = 0; // the number of the newest click or step in the history; responses to earlier ones are dropped

  function fetched(address) {
    const href = new URL(address, location.href).href.replace(/#.*/, "");
    const known = pages.get(href);
    if (known && Date.now() - known.at < FRESH_MS) return known.page;
    if (pages.size >= KEPT) pages.clear();
    const page = fetch(href)
      .then(async (answer) => {
        if (!answer.ok) return null;
        pages.set(answer.url, { at: Date.now(), page }); // a step back asks for it by this address
        return { address: new URL(answer.url), html: await answer.text() };
      })
      .catch(() => null);
    pages.set(href, { at: Date.now(), page });
    return page;
  }

  /**
   * Return whether a page can be put in place. Otherwise it is loaded: it has other scripts or another agent, or
   * somebody is typing, or a request for this branch is under way.
   */
  function fits(page) {
    const typing =
      document.activeElement.matches("textarea, input:not([type='hidden'])") && document.activeElement.id !== "text";
    return (
      page.getElementById("dialog") &&
      page.body.dataset.build === document.body.dataset.build &&
      who(page) === who(document) &&
      !typing &&
      !document.querySelector("main .htmx-request")
    );
  }

  function swap(page, position) {
    const before = placeOf(position);
    leave();
    for (const open of document.querySelectorAll("main .menu:popover-open")) open.hidePopover();
    const fresh = page.getElementById("dialog");
    for (const name of ["dialog", "seq", "of", "newest"]) root.dataset[name] = fresh.dataset[name];
    document.title = page.title;
    const composer = document.getElementById("composer");
    for (const name of ["action", "hx-post"])
      composer.setAttribute(name, page.getElementById("composer").getAttribute(name));
    window.htmx?.process(composer);
    const turns = page.getElementById("entries").childNodes;
    for (const entry of turns) entry.classList?.add("settled"); // it has its own height at once, not an estimate
    entries.replaceChildren(...turns);
    localTimes(entries);
    window.htmx?.process(entries);
    applyPieces(PIECES.map((id) => page.getElementById(id).outerHTML).join(""));
    if (before !== null) scroller.scrollTop += (placeOf(position) ?? before) - before;
  }

  const versionsAt = (position) => entries.querySelector(`[data-position="${CSS.escape(position)}"] .versions`);
  const placeOf = (position) => versionsAt(position)?.getBoundingClientRect().top ?? null;

  /** Show the branch at an address. The focus stays at the link of the same `name`. */
  async function show(href, position, name, isNew) {
    const asked = ++newest;
    const answer = await fetched(href);
    if (asked !== newest) return;
    const page = answer && new DOMParser().parseFromString(answer.html, "text/html");
    if (!page || !fits(page)) return isNew ? location.assign(href) : location.reload();
    swap(page, position);
    const versions = versionsAt(position);
    if (isNew) {
      history.replaceState({ position, name }, "");
      history.pushState(
        { position, name },
        "",
        `${answer.address.pathname}${answer.address.search}#${versions?.closest("[id]").id ?? "latest"}`,
      );
    }
    shown = location.pathname + location.search;
    document.querySelector("#nav-dialogs [aria-current]")?.removeAttribute("aria-current");
    readTurns();
    arrive();
    if (!versions) return;
    announce(tr("Version {version}", { version: versions.querySelector("span").textContent }));
    const links = [...versions.querySelectorAll("a")];
    (links.find((link) => link.getAttribute("aria-label") === name) ?? links[0])?.focus({ preventScroll: true });
  }

  entries.addEventListener("click", (event) => {
    const link = event.target.closest(".versions a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    show(link.href, link.closest("[data-position]").dataset.position, link.getAttribute("aria-label"), true);
  });
  for (const kind of ["pointerover", "focusin"])
    entries.addEventListener(kind, ({ target }) => {
      const link = target.closest(".versions a");
      if (link) fetched(link.href);
    });
  addEventListener("popstate", ({ state }) => {
    if (location.pathname + location.search !== shown) show(location.href, state?.position ?? "", state?.name, false);
  });
  document.addEventListener(
    "dominds:placed",
    (event) => event.detail.some((piece) => piece.dataset.position) && pages.clear(),
  );
}
