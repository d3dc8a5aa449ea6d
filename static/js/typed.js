// Texts that were typed into a form are there again after a login, if the session had ended when the form was sent.
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

/** The form that led to the login: its page, its action, and its texts by the names of fields. */
export const lost = JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");
if (location.pathname === "/login/") sessionStorage.setItem(KEPT, JSON.stringify({ ...lost, isLost: true }));
else if (!lost.isLost || lost.page === location.pathname) sessionStorage.removeItem(KEPT);

/** Fill a form with the texts that were typed into it before the login. */
export function refill(form) {
  if (!lost.isLost || lost.page !== location.pathname || lost.action !== addressOf(form)) return;
  for (const area of form.querySelectorAll("textarea")) area.value = lost.texts[area.name] ?? area.value;
  for (let at = form.parentElement; at; at = at.parentElement) if (at.matches("details")) at.open = true;
  lost.isLost = false;
}

for (const form of document.querySelectorAll("form:not(#composer)")) refill(form);
