// On every page: pieces from htmx, toasts, confirmations, keys, badges.
import { showBadges } from "./badges.js";
import "./palette.js";
import { applyPieces, csrfToken, failureOf, isPage, localTimes, toast, wasLoggedOut } from "./page.js";
import { readTurns } from "./sidebar.js";
import { Connection } from "./socket.js";
import "./time.js";
import "./typed.js";
import { language, tr } from "./words.js";

localTimes(document);
readTurns();

document.addEventListener("htmx:beforeOnLoad", (event) => {
  const { xhr, elt } = event.detail;
  if (wasLoggedOut(xhr)) location.reload();
  else if (elt.getAttribute("hx-swap") === "none" && !isOld(xhr) && !isPage(xhr)) applyPieces(xhr.responseText);
});

/** Return whether the socket has already brought all that this response holds. */
function isOld(xhr) {
  const seq = xhr.getResponseHeader("X-Dominds-Seq");
  return seq !== null && Number(seq) <= Number(document.getElementById("dialog")?.dataset.seq);
}

document.addEventListener("dominds:toast", ({ detail }) => toast(detail.text, detail.kind, "", detail.subject));
// A piece comes in the language of its page.
document.addEventListener("htmx:configRequest", (event) => {
  event.detail.headers["X-Page-Language"] = language;
});
// A form in a disclosure is emptied and closed once the server has accepted it.
document.addEventListener("htmx:afterRequest", ({ detail: { elt, successful } }) => {
  if (!successful || !elt.matches("details > form")) return;
  elt.parentElement.open = false;
  for (const area of elt.querySelectorAll("textarea")) area.value = area.defaultValue;
  elt.closest(".popover:popover-open")?.hidePopover();
});
// A form that is opened in a menu takes the focus.
document.addEventListener(
  "toggle",
  ({ target }) => {
    if (!target.matches(".menu:popover-open details[open]")) return;
    const field = target.querySelector("textarea, select, input:not([type='hidden'])");
    field?.focus();
    field?.select?.();
  },
  true,
);
document.addEventListener("htmx:sendError", (event) => {
  if (event.detail.elt.id !== "composer") toast(tr("No connection to the server. Nothing was changed."), "error");
});
document.addEventListener("htmx:responseError", ({ detail: { elt, xhr } }) => {
  if (xhr.status >= 500) toast(`${failureOf(xhr)} ${tr("Try again in a moment.")}`, "error");
  else if (isPage(xhr) && elt.id !== "composer") toast(failureOf(xhr), "error");
});
document.addEventListener("htmx:afterSwap", (event) =>
  localTimes(event.detail.elt.isConnected ? event.detail.elt : document),
);
document.addEventListener("submit", (event) => {
  const words = event.target.dataset.confirm;
  if (words && !confirm(words)) event.preventDefault();
  // An event of its own, since htmx prevents a form from being sent if its "submit" triggers a request.
  else event.target.querySelector("[data-on-sent]")?.dispatchEvent(new Event("sent"));
});

document.addEventListener("formdata", ({ target, formData }) => {
  // Pieces that the socket brings have no CSRF token.
  if (target.method === "post") formData.set("csrfmiddlewaretoken", csrfToken());
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = button.dataset.copy
    ? document.querySelector(button.dataset.copy)
    : (button.closest(".code") ?? button.parentElement).querySelector("pre");
  try {
    await navigator.clipboard.writeText(source.innerText);
    toast(tr("Copied."));
  } catch {
    getSelection().selectAllChildren(source);
    toast(tr("Selected: copy it with your keyboard."));
  }
});

// Keys: n new dialog, / search, j and k through rows, c the context and d its details, ? the keys.
document.addEventListener("keydown", (event) => {
  if (
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.target.closest("input, textarea, select, [contenteditable]")
  )
    return;
  if (event.key === "n") document.querySelector("[data-key='n']")?.click();
  else if (event.key === "/") (document.getElementById("search") ?? document.getElementById("nav-search"))?.focus();
  else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
  else if (event.key === "c") document.getElementById("ring-button")?.click();
  else if (event.key === "d") document.querySelector(".bar [popovertarget='side']")?.click();
  else if (event.key === "?") document.getElementById("keys")?.showPopover();
  else return;
  event.preventDefault();
});

function step(by) {
  const links = [...document.querySelectorAll("[data-row]")];
  const now = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, now + by))]?.focus();
}

document.querySelector("[name='notifications']")?.addEventListener("change", async (event) => {
  if (event.target.checked && "Notification" in window && (await Notification.requestPermission()) !== "granted") {
    toast(tr("This browser does not allow notifications here. Allow them in its settings."), "error");
  }
});
for (const range of document.querySelectorAll("input[type='range']")) {
  const show = () => range.parentElement.querySelector("output")?.replaceChildren(range.value);
  range.addEventListener("input", show);
  show();
}

// On a phone the list of settings is a row that is wider than the window: scroll it to the chosen part.
const part = document.querySelector(".settings-nav [aria-current]");
if (part) {
  const row = part.closest("ul");
  row.scrollLeft = part.offsetLeft - row.offsetLeft - (row.clientWidth - part.offsetWidth) / 2;
}

document.addEventListener("change", (event) => {
  if (!event.target.matches("[data-tick-all]")) return;
  for (const tick of document.querySelectorAll(".tick input")) tick.checked = event.target.checked;
});

// A limit that follows the default is grey and read-only.
for (const row of document.querySelectorAll("[data-follows]")) {
  const [tick, number] = [row.querySelector("[name$='follow_default']"), row.querySelector("[name$='limit']")];
  const obey = () => {
    number.readOnly = tick.checked;
    number.classList.toggle("follows", tick.checked);
  };
  tick.addEventListener("change", obey);
  obey();
}

if ("person" in document.body.dataset && !document.getElementById("dialog")) {
  new Connection({
    path: () => `/ws/me/?lang=${language}`,
    onFrame: (frame) => frame.type === "badges" && showBadges(frame),
    onState: () => {},
  }).open();
}
