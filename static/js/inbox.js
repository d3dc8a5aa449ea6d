// The inbox of questions on a wide screen: the chosen question beside the list, and keys. On others, rows are links.
import { fetchPiece, localTimes } from "./page.js";

const reader = () => document.getElementById("reader"); // looked up each time, since filters replace it
const rows = () => [...document.querySelectorAll(".inbox [data-row]")];
const isWide = matchMedia("(min-width: 1100px)");
let asked = 0; // the number of the newest request; responses to earlier ones are dropped
let shown = 0; // the request whose question is shown
let answers = -1; // the request whose question a person wants to answer, perhaps before it has come

async function read(row) {
  for (const other of rows()) other.removeAttribute("aria-current");
  row.setAttribute("aria-current", "true");
  const number = ++asked;
  const piece = await fetchPiece(row.href, { target: "reader" });
  if (number !== asked || piece === null) return;
  reader().innerHTML = piece;
  reader().scrollTop = 0;
  htmx.process(reader());
  localTimes(reader());
  shown = number;
  answer();
  const here = new URL(location);
  here.searchParams.set("at", row.dataset.row);
  history.replaceState(null, "", here);
}

/** Focus the answer's field, but never in the form of the question before, which is about to be replaced. */
function answer() {
  if (answers === shown && shown === asked)
    reader()?.querySelector("#answer, input[name='action']:checked, input[name='action']")?.focus();
}

document.addEventListener("click", (event) => {
  const row = event.target.closest(".inbox [data-row]");
  if (!row || !isWide.matches || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  read(row);
});

// A filter changes the list at once. The address follows, for a reload.
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (!detail.requestConfig.elt.matches(".filters")) return;
  shown = ++asked;
  history.replaceState(null, "", detail.xhr.responseURL);
});

document.addEventListener(
  "keydown",
  (event) => {
    if (!isWide.matches || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable], .popover, dialog")) {
      if (event.key === "Escape" && reader()?.contains(event.target))
        document.querySelector(".inbox [aria-current]")?.focus();
      return;
    }
    const all = rows();
    const now = all.indexOf(
      document.activeElement.closest("[data-row]") ?? document.querySelector(".inbox [aria-current='true']"),
    );
    const by = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    if (by && (event.key.length === 1 || all.includes(document.activeElement))) {
      const next = all[Math.max(0, Math.min(all.length - 1, now + by))];
      next?.focus();
      if (next && all[now] !== next) read(next);
    } else if (event.key === "a") {
      answers = asked;
      answer();
    } else return;
    event.preventDefault();
    event.stopImmediatePropagation(); // app.js has the same keys for other lists
  },
  true,
);
