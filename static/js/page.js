// What every page needs: putting pieces in place, saying things to people and to screen readers.

import { language, tr } from "./words.js";

// What becomes of a request is told to the element that made it, and from there to the document, which it may have
// left.
const OUTCOMES = ["htmx:beforeOnLoad", "htmx:sendError", "htmx:responseError", "dominds:toast"];

const GAP_PX = 6; // between a menu and what it belongs to

export const csrfToken = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];

export const iconUrl = (name) => `${document.body.dataset.icons}#${name}`;

export const iconOf = (name) => `<svg class="icon" aria-hidden="true"><use href="${iconUrl(name)}"/></svg>`;

/** The text of an element as the page shows it: how its template is broken into lines does not matter. */
export const textOf = (node) => node.textContent.replace(/\s+/g, " ").trim();

/** Put pieces of HTML where they belong: in place of what has the same id, or among the entries by position. */
export function applyPieces(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const placed = [];
  for (const piece of [...holder.content.children]) {
    const there = piece.id ? document.getElementById(piece.id) : null;
    const source = piece.outerHTML;
    if (there ? there.source !== source && replace(there, piece) : place(piece)) {
      if ("position" in piece.dataset) {
        piece.source = source; // an entry: it comes with a request's answer and by the socket
        piece.classList.add("settled"); // with its own height at once, not an estimate
      }
      localTimes(piece);
      window.htmx?.process(piece);
      placed.push(piece);
    }
  }
  if (placed.length) document.dispatchEvent(new CustomEvent("dominds:placed", { detail: placed }));
  return placed;
}

function replace(old, piece) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  if (focused?.matches("textarea, input") && focused.value !== focused.defaultValue) return false; // being written in
  const scrolled = old.querySelector("[data-scrolls]")?.scrollTop;
  for (const open of old.querySelectorAll("details[open]:is([id], [data-keep])")) {
    const same = piece.querySelector(open.id ? `#${CSS.escape(open.id)}` : "[data-keep]");
    if (same) same.open = true;
  }
  const shown = old.matches(":popover-open");
  old.replaceWith(piece);
  for (const kind of OUTCOMES)
    old.addEventListener(kind, (event) => document.dispatchEvent(new CustomEvent(kind, { detail: event.detail })));
  if (shown) piece.showPopover();
  if (scrolled) piece.querySelector("[data-scrolls]")?.scrollTo(0, scrolled);
  if (focused)
    (sameControl(focused) ?? afterAnswer(focused) ?? piece.closest("[tabindex]"))?.focus({ preventScroll: true });
  return true;
}

/** Where one goes on who has answered a question by its card: at the next one, or the composer where keys are at hand. */
function afterAnswer(gone) {
  if (!gone.closest(".asks")) return null;
  const composer = matchMedia("(pointer: fine)").matches ? document.querySelector("#text:enabled") : null;
  return document.querySelector(".asks[data-state='open'] button") ?? composer;
}

/** The control of a new piece that stands for one of the piece before: by its own id, or by its words. */
function sameControl(gone) {
  const words = (control) => control.getAttribute("aria-label") || control.name || control.textContent.trim();
  const nearest = gone.closest("[id]");
  const there = nearest && document.getElementById(nearest.id);
  if (nearest === gone) return there;
  return [...(there?.querySelectorAll(gone.tagName) ?? [])].find((control) => words(control) === words(gone));
}

function place(piece) {
  if (piece.dataset.place !== "transcript") return false;
  const entries = document.getElementById("entries");
  if (!entries || entries.closest("[data-newest='no']")) return false;
  const position = Number(piece.dataset.position);
  piece.isNew = true;
  const first = entries.querySelector("[data-position]");
  const older = document.getElementById("older");
  if (older && first && position < Number(first.dataset.position)) return false; // belongs to a page not loaded
  let after = null;
  for (const entry of [...entries.querySelectorAll("[data-position]")].reverse()) {
    if (Number(entry.dataset.position) <= position) {
      after = entry;
      break;
    }
  }
  if (after) after.after(piece);
  else if (first) first.before(piece);
  else (document.getElementById("live") ?? document.getElementById("latest")).before(piece);
  return true;
}

let unsaid = [];

/**
 * A word to people who listen instead of looking. What comes at one moment is said in one sentence, so that nothing is
 * cut off.
 */
export function announce(words) {
  if (!unsaid.length) setTimeout(say, 150);
  unsaid.push(words);
}

function say() {
  const announcer = document.getElementById("announcer");
  const words = unsaid.join(". ");
  announcer.textContent = announcer.textContent === words ? `${words}\u00a0` : words;
  unsaid = [];
}

/** Whether the login page came in place of an answer: the session has ended, and nothing was done. */
export const wasLoggedOut = (xhr) => new URL(xhr.responseURL, location).pathname === "/login/";

/** Whether a whole page came in place of pieces, as for an address that is gone. */
export const isPage = (xhr) => /^\s*<!doctype/i.test(xhr.responseText);

/** What an error's page says went wrong: that of a server that is busy in its heading, others also below it. */
export function failureOf(xhr) {
  if (xhr.status >= 500 && xhr.status !== 503) return tr("The server failed at this.");
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
  const words = [...page.querySelectorAll(xhr.status === 503 ? "h1" : "h1, h1 + p")].map(textOf);
  return words.length ? `${words.join(". ").replace(/\.$/, "")}.` : tr("The server failed at this.");
}

/** A piece that the server makes; null where it is told why there is none, or the page of `instead` is on its way. */
export async function fetchPiece(address, { instead = address, target = "" } = {}) {
  try {
    const answer = await fetch(address, { headers: { "HX-Request": "true", ...(target && { "HX-Target": target }) } });
    if (answer.ok && !answer.redirected) return await answer.text();
    location.assign(instead); // logged out, or no longer there
  } catch {
    toast(tr("No connection to the server. Nothing was changed."), "error");
  }
  return null;
}

/** Of two toasts about one `subject` the later one stays, or the one that says more. */
export function toast(text, kind = "success", href = "", subject = "") {
  const box = document.createElement("div");
  box.className = `toast ${kind}`;
  const same = subject && document.querySelector(`.toast[data-subject="${CSS.escape(subject)}"]`);
  if (same && same.textContent.length > text.length) return;
  if (same) same.remove();
  if (subject) box.dataset.subject = subject;
  const words = href ? Object.assign(document.createElement("a"), { href }) : box;
  words.textContent = text;
  if (words !== box) box.append(words);
  const place = document.getElementById("toasts");
  place.hidePopover();
  place.showPopover(); // the popover shown last lies above the others
  place.append(box);
  setTimeout(() => box.remove(), kind === "error" ? 9000 : 5000);
}

// In the page's language; a browser that speaks it says how its country writes times.
const LOCALE =
  navigator.language.toLowerCase().split("-")[0] === language.split("-")[0] ? navigator.language : language;
const TIME = clock({ hour: "2-digit", minute: "2-digit" });
export const DATE = clock({ dateStyle: "medium", timeStyle: "short" });
const DAY = clock({ dateStyle: "short" });

/** In the zone that was chosen in the settings, or else in the browser's. */
function clock(form) {
  try {
    return new Intl.DateTimeFormat(LOCALE, { ...form, timeZone: document.documentElement.dataset.zone || undefined });
  } catch {
    return new Intl.DateTimeFormat(LOCALE, form); // a zone that is too new for this browser
  }
}

/** Show times in the reader's own zone, with the day where it is not today. */
export function localTimes(root) {
  const today = DAY.format(new Date());
  for (const element of root.querySelectorAll("time[data-form]")) {
    const moment = new Date(element.dateTime);
    const isOfToday = element.dataset.form === "time" && DAY.format(moment) === today;
    element.textContent = (isOfToday ? TIME : DATE).format(moment);
    element.title = DATE.format(moment);
  }
}

/** Put a menu below an element, or above it where there is more room; always within the window. */
export function standBeside(menu, element) {
  const { left, top, bottom } = element.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const down = bottom + GAP_PX;
  const start = down + height <= innerHeight ? down : top - GAP_PX - height;
  menu.style.top = `${Math.max(GAP_PX, Math.min(start, innerHeight - height - GAP_PX))}px`;
  menu.style.left = `${Math.max(GAP_PX, Math.min(left, innerWidth - width - GAP_PX))}px`;
}

export function duration(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60
    ? tr("{number} s", { number: seconds })
    : tr("{minutes} min {seconds} s", { minutes: Math.floor(seconds / 60), seconds: seconds % 60 });
}

/** A random id, also on plain HTTP, where crypto.randomUUID is missing. */
export function randomId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
