// The bar of context breaking: what the engine is doing to the context, while it does it.
import { announce, iconUrl } from "./page.js";

const ICONS = {
  detection: "sync",
  summarize_old: "compress",
  prioritize_recent: "star",
  content_type_chunking: "code",
  discard_low_rel: "clear",
  hybrid: "layers",
  success: "check",
  recovery: "retry",
  handover: "sync",
};
const LAST = ["success", "handover"];
const COMPUTING = ["detection", "recovery"]; // no share of a whole to show yet
const STUCK_MS = 60_000;

let timer = 0;

export function showBreaking(update) {
  const box = document.getElementById("breaking");
  if (box.dataset.shown === "no") return;
  clearTimeout(timer);
  box.hidden = false;
  box.dataset.phase = update.phase;
  box.dataset.tone = toneOf(update, box.dataset.p1 === "yes");
  box.classList.toggle("pulses", update.phase === "summarize_old");
  box.classList.toggle("spins", update.phase === "detection");
  document.getElementById("breaking-icon").setAttribute("href", iconUrl(ICONS[update.phase] ?? "sync"));
  document.getElementById("breaking-message").textContent = update.message;
  const bar = document.getElementById("breaking-bar");
  if (COMPUTING.includes(update.phase) || update.progress < 0) bar.removeAttribute("value");
  else bar.value = update.progress;
  const badge = document.getElementById("breaking-priority");
  badge.hidden = !update.priority;
  badge.dataset.priority = update.priority ?? "";
  badge.textContent = badge.hidden ? "" : `P${update.priority}${update.area ? `: ${update.area}` : ""}`;
  if (update.phase === "detection") document.getElementById("breaking-details").hidden = true;
  if (LAST.includes(update.phase) || update.phase === "recovery") announce(update.message);
  const seconds = Number(box.dataset.hide);
  timer = setTimeout(
    () => {
      box.hidden = true;
    },
    LAST.includes(update.phase) ? seconds * 1000 : STUCK_MS,
  );
}

/** Nothing could be made smaller: the notice says so, and no bar is to go on claiming that work is under way. */
export function endBreaking() {
  const box = document.getElementById("breaking");
  if (LAST.includes(box.dataset.phase)) return;
  clearTimeout(timer);
  box.hidden = true;
}

function toneOf(update, highlightsP1) {
  if (update.phase === "recovery" || update.progress < 0) return "recovery";
  if (update.phase === "detection") return "warning";
  return update.priority === 1 && highlightsP1 ? "p1" : "normal";
}
