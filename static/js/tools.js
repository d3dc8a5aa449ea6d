// A row of tool calls is one line once something follows it: how many, of which tools, and whether any failed.
import { iconOf } from "./page.js";
import { tr } from "./words.js";

const LEAST = 3;
const ASKS_NOTHING = ".turn-assistant:not(:has(> .body, .asks, .tool))"; // it called the tools around it, without a word

/** Not while an answer streams: lines that are being read would move. */
export function foldTools(entries) {
  let row = [];
  for (const entry of entries.querySelectorAll(":scope > [data-position]")) {
    if (entry.matches(".turn-tool:has(.tool)") || (row.length && entry.matches(ASKS_NOTHING))) row.push(entry);
    else {
      fold(row);
      row = [];
    }
  }
}

function fold(row) {
  const calls = row.flatMap((entry) => [...entry.querySelectorAll(".tool")]);
  if (calls.length < LEAST || row.some((entry) => entry.isGrouped)) return;
  if (calls.some((call) => ["pending", "waiting"].includes(call.dataset.status) || call.open)) return;
  const failed = calls.filter((call) => call.dataset.status !== "ok").length;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "tool-group" });
  button.dataset.position = row[0].dataset.position;
  button.setAttribute("aria-expanded", "false");
  button.innerHTML = `${iconOf("tool")}<strong></strong><span class="hint cut"></span><span class="failed"></span>`;
  button.querySelector("strong").textContent = tr("{number} tool calls", { number: calls.length });
  button.querySelector(".hint").textContent = [...new Set(calls.map((call) => call.querySelector("code").textContent))].join(", ");
  if (failed) button.querySelector(".failed").textContent = tr("{number} failed", { number: failed });
  const show = (shown) => {
    button.setAttribute("aria-expanded", shown);
    for (const entry of row) shown ? entry.removeAttribute("hidden") : entry.setAttribute("hidden", "until-found");
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") === "false"));
  for (const entry of row) {
    entry.isGrouped = true;
    entry.addEventListener("beforematch", () => show(true)); // found by the browser's own search
  }
  row[0].before(button);
  show(false);
}

/** The newest line of a running tool, beside its name; it says more of the call than the arguments do. */
export function showLine(entries, { call, line }) {
  const card = entries.querySelector(`.tool[data-call="${CSS.escape(call)}"]`);
  if (!card) return;
  card.querySelector(".tool-line").textContent = line;
  card.querySelector(".hint").hidden = Boolean(line);
}

/** A place that one was led to is not left folded. */
export function unfold(place) {
  let button = place.previousElementSibling;
  while (place.hidden && button && !button.matches(".tool-group")) button = button.previousElementSibling;
  if (place.hidden) button?.click();
}
