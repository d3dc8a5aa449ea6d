// The first page: the choice of agent and model, and suggestions of what to ask.
import { startComposer } from "./composer.js";
import { startPickers } from "./picker.js";

startComposer("new");
startPickers();
const form = document.getElementById("composer");
const field = document.getElementById("text");

/** Show the names of the chosen agent and model, and this agent's suggestions. */
function show() {
  const agent = form.querySelector("[name='agent']:checked");
  const model = form.querySelector("[name='model']:checked");
  for (const list of document.querySelectorAll(".suggestions")) list.hidden = list.dataset.agent !== agent?.value;
  say("agent", agent && nameOf(agent));
  const own = agent?.closest(".option").dataset.model;
  form.querySelector("[data-own]")?.replaceChildren(own ?? "");
  if (model) say("model", model.value ? nameOf(model) : own);
}

const nameOf = (choice) => choice.closest(".option").querySelector("strong").textContent;

function say(name, words) {
  const place = form.querySelector(`[data-chosen='${name}']`);
  if (!place || !words) return;
  place.textContent = words;
  const button = place.closest("button");
  button.setAttribute(
    "aria-label",
    button.getAttribute("aria-label").replace(/([:：]\s*).*/, (_, mark) => mark + words),
  );
}

form.addEventListener("change", show);
show();

document.addEventListener("click", (event) => {
  const button = event.target.closest(".suggestion");
  if (!button) return;
  event.preventDefault();
  field.value = button.value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
});
