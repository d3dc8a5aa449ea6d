// The first page: who is to answer, and what one could ask.
import { startComposer } from "./composer.js";

startComposer("new");
const form = document.getElementById("composer");
const field = document.getElementById("text");

/** The chips say what is ticked; the suggestions are those of the agent. */
function show() {
  const agent = form.querySelector("[name='agent']:checked");
  const model = form.querySelector("[name='model']:checked");
  for (const list of document.querySelectorAll(".suggestions")) list.hidden = list.dataset.agent !== agent?.value;
  say("agent", agent?.closest(".option").querySelector("strong").textContent);
  const own = agent?.closest(".option").dataset.model;
  form.querySelector("[data-own]")?.replaceChildren(own ?? "");
  if (model) say("model", model.value.replace(/^[^/]*\//, "") || own);
}

function say(name, words) {
  const place = form.querySelector(`[data-chosen='${name}']`);
  if (!place || !words) return;
  place.textContent = words;
  const button = place.closest("button");
  button.setAttribute("aria-label", button.getAttribute("aria-label").replace(/([:：]\s*).*/, (_, mark) => mark + words));
}

form.addEventListener("change", show);
show();

for (const picker of form.querySelectorAll(".picker")) {
  const options = [...picker.querySelectorAll(".option")];
  const search = picker.querySelector("[data-narrow]");
  const narrow = () => {
    const words = search.value.toLowerCase().split(/\s+/);
    for (const option of options) option.hidden = !words.every((word) => option.textContent.toLowerCase().includes(word));
    for (const group of picker.querySelectorAll(".group")) group.hidden = Boolean(search.value);
    picker.querySelector(".none").hidden = options.some((option) => !option.hidden);
  };
  search.addEventListener("input", narrow);
  picker.addEventListener("toggle", (event) => {
    if (event.newState !== "open") return;
    search.value = "";
    narrow();
    (picker.querySelector(":checked") ?? search).scrollIntoView({ block: "nearest" });
    search.focus();
  });
  picker.addEventListener("click", (event) => event.detail && event.target.closest(".option") && !event.target.matches("input:disabled") && done(picker));
  picker.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // would send the message
    if (event.target === search) options.find((option) => !option.hidden && !option.control.disabled)?.control.click();
    done(picker);
  });
}

/** After the click has ticked what it was on. */
function done(picker) {
  setTimeout(() => {
    picker.hidePopover();
    field.focus();
  });
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".suggestion");
  if (!button) return;
  event.preventDefault();
  field.value = button.value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
});
