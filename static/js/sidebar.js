// The dialogs in the navigation: their states, and which have turns that this browser has not shown yet.
import { fetchPiece, iconOf, standBeside, textOf } from "./page.js";
import { tr } from "./words.js";

const SEEN = "dominds:seen"; // by a dialog's id, the number of turns that it had when it was last shown
const KEPT = 500;
const FOLDERS = "dominds:folders"; // the names of open folders
const turns = new Map();

/** Update the dialogs, each given as [id, state, state in words, number of turns]. */
export function markDialogs(dialogs) {
  for (const [id, state, words, count] of dialogs) {
    turns.set(id, count);
    const dot = document.querySelector(`#recent-${CSS.escape(id)} .state-dot`);
    if (dot) Object.assign(dot, { title: words }).dataset.state = state;
  }
  markNews();
}

/** Read the numbers of turns from a list that has just come from the server, and open its folders. */
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
  keepFolders(); // a folder may have been opened before this script ran
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

/** Mark dialogs with turns that this browser has not shown, except dialogs that are listed for the first time. */
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

// The menu of a dialog in the list. One button serves all rows: it moves to the row that has the pointer or the focus.
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
    // Its commands act on another dialog than the page's, and must not be found any more.
    if (target === menu && newState === "closed") menu.replaceChildren();
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
