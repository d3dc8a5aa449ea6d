// The dialogs in the navigation: how they stand, and which have something that this browser has not shown.
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
  markNews();
}

const openFolders = () => new Set(JSON.parse(localStorage.getItem(FOLDERS) ?? "[]"));
document.addEventListener("toggle", ({ target }) => {
  if (!target.matches(".nav-folder")) return;
  const open = openFolders();
  open[target.open ? "add" : "delete"](target.dataset.folder);
  localStorage.setItem(FOLDERS, JSON.stringify([...open]));
}, true);

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
document.addEventListener("dominds:placed", (event) => event.detail.some((piece) => piece.id.startsWith("recent-")) && markNews());
