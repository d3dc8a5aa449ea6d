// A row of tool calls is folded into one sentence once something follows it: what was done, how long it took, and
// whether any call failed.
import { duration, iconOf } from "./page.js";
import { tr } from "./words.js";

const LEAST = 3;
// Words for one call and for several calls of each tool. Other tools are called by their names.
const DID = {
  search_archive: [tr("searched the archive"), tr("searched the archive {number} times")],
  read_artifact: [tr("read a long result"), tr("read long results {number} times")],
  read_file: [tr("read a file"), tr("read {number} files")],
  write_file: [tr("wrote a file"), tr("wrote {number} files")],
  list_files: [tr("listed files"), tr("listed files {number} times")],
  run_command: [tr("ran a command"), tr("ran {number} commands")],
  add_reminder: [tr("added a reminder"), tr("added {number} reminders")],
};
const OTHER = [tr("used {name}"), tr("used {name} {number} times")];
// An agent's turn that only called tools, without text.
const ASKS_NOTHING = ".turn-assistant:not(:has(> .body, .asks, .tool))";

/** Fold finished rows of tool calls. It is not called while an answer streams, since lines being read would move. */
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
  button.querySelector("strong").textContent = sentence(calls);
  button.querySelector(".hint").textContent = timeOf(row);
  if (failed) button.querySelector(".failed").textContent = tr("{number} failed", { number: failed });
  const show = (shown) => {
    button.setAttribute("aria-expanded", shown);
    for (const entry of row) shown ? entry.removeAttribute("hidden") : entry.setAttribute("hidden", "until-found");
  };
  button.addEventListener("click", () => show(button.getAttribute("aria-expanded") === "false"));
  for (const entry of row) {
    entry.isGrouped = true;
    entry.addEventListener("beforematch", () => show(true)); // the browser's own search found something in it
  }
  row[0].before(button);
  show(false);
}

/** Return a sentence such as "Read 3 files, ran 2 commands". */
function sentence(calls) {
  const times = new Map();
  for (const { textContent: name } of calls.map((call) => call.querySelector("code")))
    times.set(name, (times.get(name) ?? 0) + 1);
  const clauses = [...times].map(([name, number]) => {
    const [once, often] = DID[name] ?? OTHER;
    return (number === 1 ? once : often).replace("{name}", name).replace("{number}", number);
  });
  const words = clauses.join(tr(", "));
  return words[0].toUpperCase() + words.slice(1);
}

/** Return the time from the answer that made the first call to the last result, or nothing if it is under a second. */
function timeOf(row) {
  const begun = row[0].previousElementSibling?.querySelector("time")?.dateTime;
  const took = new Date(row.findLast((entry) => entry.dataset.at)?.dataset.at) - new Date(begun);
  return took >= 1000 ? duration(took) : "";
}

/** Show the newest line of a running tool beside its name, in place of the arguments, which say less. */
export function showLine(entries, { call, line }) {
  const card = entries.querySelector(`.tool[data-call="${CSS.escape(call)}"]`);
  if (!card) return;
  card.querySelector(".tool-line").textContent = line;
  card.querySelector(".hint").hidden = Boolean(line);
}

/** Unfold the row that hides a place to which the reader was led. */
export function unfold(place) {
  let button = place.previousElementSibling;
  while (place.hidden && button && !button.matches(".tool-group")) button = button.previousElementSibling;
  if (place.hidden) button?.click();
}
