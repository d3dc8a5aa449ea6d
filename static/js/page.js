// What every page needs: putting pieces in place, and telling people and screen readers.

import { language, tr } from "./words.js";

// Events about a request, which htmx sends to the element that made it. If that was replaced meanwhile, they are passed
// on to the document.
const OUTCOMES = ["htmx:beforeOnLoad", "htmx:sendError", "htmx:responseError", "dominds:toast"];

const GAP_PX = 6; // between a menu and its element

export const csrfToken = () => JSON.parse(document.body.getAttribute("hx-headers"))["X-CSRFToken"];

export const iconUrl = (name) => `${document.body.dataset.icons}#${name}`;

export const iconOf = (name) => `<svg class="icon" aria-hidden="true"><use href="${iconUrl(name)}"/></svg>`;

/** Return the text of an element as the page shows it, without its template's line breaks. */
export const textOf = (node) => node.textContent.replace(/\s+/g, " ").trim();

/** Put pieces of HTML in place of elements with the same ids, or among the entries by position. Return those placed. */
export function applyPieces(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  const placed = [];
  for (const piece of [...holder.content.children]) {
    const there = piece.id ? document.getElementById(piece.id) : null;
    const source = piece.outerHTML;
    if (there ? there.source !== source && replace(there, piece) : place(piece)) {
      if ("position" in piece.dataset) {
        piece.source = source; // an entry may come twice, with a response and by the socket
        piece.classList.add("settled"); // it has its own height at once, not an estimate
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

/** Return the element to focus after a question was answered on its card: the next question's, or the composer. */
function afterAnswer(gone) {
  if (!gone.closest(".asks")) return null;
  const composer = matchMedia("(pointer: fine)").matches ? document.querySelector("#text:enabled") : null;
  return document.querySelector(".asks[data-state='open'] button") ?? composer;
}

/** Return the control of the new piece that corresponds to a control of the old one, by its id or by its words. */
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
 * Tell screen readers something. Announcements of one moment are joined, so that none cuts off another.
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

/** Return whether the login page came as the response: the session has ended, and nothing was done. */
export const wasLoggedOut = (xhr) => new URL(xhr.responseURL, location).pathname === "/login/";

/** Return whether a whole page came as the response, as for an address that is gone. */
export const isPage = (xhr) => /^\s*<!doctype/i.test(xhr.responseText);

/** Return what an error page says: its heading, and the paragraph below it unless the server is busy (503). */
export function failureOf(xhr) {
  if (xhr.status >= 500 && xhr.status !== 503) return tr("The server failed at this.");
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
  const words = [...page.querySelectorAll(xhr.status === 503 ? "h1" : "h1, h1 + p")].map(textOf);
  return words.length ? `${words.join(". ").replace(/\.$/, "")}.` : tr("The server failed at this.");
}

/** Return a piece from the server, or null after a failure that was told, or while the page `instead` is loading. */
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

/** Show a toast. Of two toasts about one `subject`, the longer one stays, or else the later one. */
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

// The page's language. If the browser's language is the same, its country decides how times are written.
const LOCALE =
  navigator.language.toLowerCase().split("-")[0] === language.split("-")[0] ? navigator.language : language;
const TIME = clock({ hour: "2-digit", minute: "2-digit" });
export const DATE = clock({ dateStyle: "medium", timeStyle: "short" });
const DAY = clock({ dateStyle: "short" });

/** Return a formatter for the time zone that was chosen in the settings, or else for the browser's. */
function clock(form) {
  try {
    return new Intl.DateTimeFormat(LOCALE, { ...form, timeZone: document.documentElement.dataset.zone || undefined });
  } catch {
    return new Intl.DateTimeFormat(LOCALE, form); // this browser does not know the zone
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

/** Return a random id. On plain HTTP there is no crypto.randomUUID. */
export function randomId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
