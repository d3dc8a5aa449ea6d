// The theme, which is stored for the person, and the text size, which is stored in this browser.
import { csrfToken, toast } from "./page.js";
import { tr } from "./words.js";

const root = document.documentElement;
export const THEMES = { system: tr("system"), light: tr("light"), dark: tr("dark") };
export const SIZES = { small: tr("small"), normal: tr("normal"), large: tr("large") };

export async function wear(theme) {
  const answer = await fetch("/api/settings", {
    method: "PATCH",
    headers: { "X-CSRFToken": csrfToken(), "Content-Type": "application/json" },
    body: JSON.stringify({ theme }),
  }).catch(() => null);
  if (!answer?.ok) return toast(tr("Not saved: the server could not be asked."), "error");
  root.dataset.theme = theme;
  localStorage.setItem("dominds:theme", theme);
}

export function write(size) {
  root.dataset.size = size;
  localStorage.setItem("dominds:size", size);
}

const panel = document.getElementById("appearance");
panel?.addEventListener("toggle", () => {
  for (const radio of panel.querySelectorAll("input")) radio.checked = radio.value === root.dataset[radio.name];
});
panel?.addEventListener("change", ({ target }) => (target.name === "theme" ? wear(target.value) : write(target.value)));
