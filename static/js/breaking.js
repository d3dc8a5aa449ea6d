// The progress bar of context breaking, which shows each step while the context is being rewritten.
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
const COMPUTING = ["detection", "recovery"]; // phases without a known progress
const STUCK_MS = 60_000;

let timer = 0;

export function showBreaking({ phase, message, progress, priority, area }) {
  const box = document.getElementById("breaking");
  if (box.dataset.shown === "no") return;
  const [icon, words, bar, badge, details] = ["icon", "message", "bar", "priority", "details"].map((part) =>
    document.getElementById(`breaking-${part}`),
  );
  const isLast = LAST.includes(phase);
  box.hidden = false;
  box.dataset.phase = phase;
  box.dataset.tone = toneOf(phase, progress, priority === 1 && box.dataset.p1 === "yes");
  box.classList.toggle("pulses", phase === "summarize_old");
  box.classList.toggle("spins", phase === "detection");
  icon.setAttribute("href", iconUrl(ICONS[phase] ?? "sync"));
  words.textContent = message;
  if (COMPUTING.includes(phase) || progress < 0) bar.removeAttribute("value");
  else bar.value = progress;
  badge.hidden = !priority;
  badge.dataset.priority = priority ?? "";
  badge.textContent = priority ? `P${priority}${area ? `: ${area}` : ""}` : "";
  if (phase === "detection") details.hidden = true;
  if (isLast || phase === "recovery") announce(message);
  hideAfter(isLast ? Number(box.dataset.hide) * 1000 : STUCK_MS);
}

/** Hide the bar when a notice comes, unless the last phase has come: nothing could be made smaller. */
export function endBreaking() {
  if (!LAST.includes(document.getElementById("breaking").dataset.phase)) hideAfter(0);
}

function hideAfter(ms) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    document.getElementById("breaking").hidden = true;
  }, ms);
}

function toneOf(phase, progress, isP1) {
  if (phase === "recovery" || progress < 0) return "recovery";
  if (phase === "detection") return "warning";
  return isP1 ? "p1" : "normal";
}
