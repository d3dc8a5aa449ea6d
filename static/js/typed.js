// What a form held when it turned out that the session had ended is there again after the login.
import { wasLoggedOut } from "./page.js";

const KEPT = "dominds:typed";
const addressOf = (form) => form.getAttribute("action");

document.addEventListener("submit", ({ target }) => {
  if (!target.querySelector("textarea")) return;
  const texts = [...target.querySelectorAll("textarea, [name='seq']")].map((field) => [field.name, field.value]);
  const kept = { page: location.pathname, action: addressOf(target), texts: Object.fromEntries(texts) };
  sessionStorage.setItem(KEPT, JSON.stringify(kept));
});
document.addEventListener("htmx:beforeOnLoad", ({ detail: { elt, xhr } }) => {
  if (elt.matches("form") && !wasLoggedOut(xhr)) sessionStorage.removeItem(KEPT);
});

/** The form of this page that led to the login: its address, and its texts by their names. */
export const lost = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
if (location.pathname === "/login/") sessionStorage.setItem(KEPT, JSON.stringify({ ...lost, isLost: true }));
else if (!lost.isLost || lost.page === location.pathname) sessionStorage.removeItem(KEPT);

/** Fill a form with what was lost of it. */
export function refill(form) {
  if (!lost.isLost || lost.page !== location.pathname || lost.action !== addressOf(form)) return;
  for (const area of form.querySelectorAll("textarea")) area.value = lost.texts[area.name] ?? area.value;
  for (let at = form.parentElement; at; at = at.parentElement) if (at.matches("details")) at.open = true;
  lost.isLost = false;
}

for (const form of document.querySelectorAll("form:not(#composer)")) refill(form);
