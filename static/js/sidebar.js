// The dialogs in the navigation: how they stand, and which have something that this browser has not shown.
import { fetchPiece, iconOf, standBeside, textOf } from "./page.js";
import { tr } from "./words.js";

const SEEN = "dominds:seen"; // id of a dialog: how many turns it had when it was last looked at
const KEPT = 500;
const FOLDERS = "dominds:folders"; // names of those that are open
const turns = new Map();

/** Each as [id, state, its words, number of turns]. */
export function markDialogs(dialogs) {
  for (const [id, state, words, count] of dialogs) {
    turns.set(id, count);
    const dot = document.querySelector(`#recent-${CSS.escape(id)} .state-dot`);
    if (dot) Object.assign(dot, { title: words }).dataset.state = state;
  }
  markNews();
}

/** The numbers of turns stand beside the list, which has just come from the server. */
export function readTurns() {
  const listed = document.getElementById("nav-dialogs")?.dataset.turns.split(" ").filter(Boolean) ?? [];
  for (const [id, count] of listed.map((entry) => entry.split(":"))) turns.set(id, Number(count));
  const open = openFolders();
  for (const folder of document.querySelectorAll(".nav-folder")) folder.open ||= open.has(folder.dataset.folder);
  for (const link of document.querySelectorAll("#nav-dialogs li > a")) {
    if (link.pathname !== location.pathname || link.hasAttribute("aria-current")) continue;
    link.setAttribute("aria-current", "page");
    link.closest(".nav-folder")?.setAttribute("open", "");
  }
  keepFolders(); // one may have been opened before this script was there
  markNews();
}

const openFolders = () => new Set(JSON.parse(localStorage.getItem(FOLDERS) ?? "[]"));
function keepFolders() {
  const open = openFolders();
  for (const folder of document.querySelectorAll(".nav-folder"))
    open[folder.open ? "add" : "delete"](folder.dataset.folder);
  localStorage.setItem(FOLDERS, JSON.stringify([...open]));
}
document.addEventListener("toggle", ({ target }) => target.matches(".nav-folder") && keepFolders(), true);
document.addEventListener("htmx:beforeSwap", ({ target }) => target.id === "nav-dialogs" && keepFolders());

/** What is new is new to this browser: a dialog that it meets for the first time is not. */
function markNews() {
  const seen = JSON.parse(localStorage.getItem(SEEN) ?? "{}");
  for (const item of document.querySelectorAll("#nav-dialogs li")) {
    const id = item.id.slice("recent-".length);
    const isOpen = item.querySelector("[aria-current]") && !document.hidden;
    if (isOpen || !(id in seen)) seen[id] = turns.get(id);
    item.querySelector(".news").hidden = !(seen[id] < turns.get(id));
  }
  localStorage.setItem(SEEN, JSON.stringify(Object.fromEntries(Object.entries(seen).slice(-KEPT))));
}

document.addEventListener("visibilitychange", () => document.hidden || markNews());
document.addEventListener("htmx:afterSettle", (event) => event.target.id === "nav-dialogs" && readTurns());
document.addEventListener(
  "dominds:placed",
  (event) => event.detail.some((piece) => piece.id.startsWith("recent-")) && markNews(),
);

// What can be done with a dialog: one button for all rows, in that which one points at or has reached by keys.
const menu = document.getElementById("nav-menu");
const more = Object.assign(document.createElement("button"), { type: "button", className: "nav-more" });
more.setAttribute("aria-haspopup", "dialog");
more.innerHTML = iconOf("more");

for (const kind of menu ? ["mouseover", "focusin"] : []) {
  document.getElementById("nav").addEventListener(kind, ({ target }) => {
    const row = target.closest("#nav-dialogs li");
    if (!row || row === more.parentElement) return;
    more.setAttribute("aria-label", tr("Actions: {name}", { name: textOf(row.querySelector(".cut")) }));
    row.append(more);
  });
}

more.addEventListener("click", async () => {
  const row = more.closest("li");
  const address = row.querySelector("a").href;
  const piece = await fetchPiece(`${address}menu/`, { instead: address });
  if (piece === null) return;
  menu.innerHTML = piece;
  window.htmx?.process(menu);
  menu.showPopover();
  standBeside(menu, row);
  menu.querySelector("button, summary, a")?.focus();
});

menu?.addEventListener(
  "toggle",
  ({ target, newState }) => {
    if (target === menu && newState === "closed") menu.replaceChildren(); // its commands are of another dialog than the page's
    if (!target.matches("details")) return;
    if (more.isConnected) standBeside(menu, more.closest("li"));
  },
  true,
);
menu?.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) return;
  menu.hidePopover();
  const words = new URLSearchParams({ q: document.getElementById("nav-search").value });
  window.htmx.ajax("GET", `/dialogs/?${words}`, { target: "#nav-dialogs", swap: "outerHTML" });
});
