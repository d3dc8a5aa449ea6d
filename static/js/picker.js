// Pickers: lists that open at a button. Typing narrows them, and Enter takes the first option. Options that were pinned
// in this browser come first.
import { iconOf } from "./page.js";
import { tr } from "./words.js";

const PINNED = "dominds:pinned"; // "agent:ID" and "model:PROVIDER/MODEL", oldest first
const optionsOf = (picker) => [...picker.querySelectorAll(".option")];
const isOpenTo = (option) => !option.closest("[hidden]") && !(option.control ?? option).disabled;

export function startPickers() {
  document.addEventListener(
    "input",
    ({ target }) => target.matches("[data-narrow]") && narrow(target.closest(".picker, .picker-list")),
  );
  document.addEventListener(
    "toggle",
    ({ target, newState }) => {
      if (target.matches(".picker") && newState === "open") begin(target);
    },
    true,
  );
  document.addEventListener("htmx:afterSettle", ({ target }) => {
    const picker = target.closest(".picker:popover-open");
    if (picker) begin(picker);
  });
  document.addEventListener("click", (event) => {
    const star = event.target.closest(".star");
    if (star) return pin(star);
    const option = event.target.closest(".picker .option");
    if (event.detail && option && isOpenTo(option) && !event.target.matches("input:disabled"))
      done(option.closest(".picker"));
  });
  let chosen = document.getElementById("model-button")?.textContent;
  document.addEventListener("dominds:placed", (event) => {
    const button = event.detail.find((piece) => piece.id === "model-button");
    const list = document.querySelector("#model-choice > :has(.options)");
    if (button && list && button.textContent !== chosen) window.htmx.trigger(list, "stale");
    chosen = button?.textContent ?? chosen;
  });
  document.addEventListener("keydown", (event) => {
    const list = event.target.closest(".picker-list");
    if (list && event.key === "Enter" && event.target.matches("[data-narrow]")) takeListed(list, event);
    const picker = event.target.closest(".picker");
    if (!picker || event.target.matches(".star")) return;
    if (event.key === "Enter") take(picker, event);
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") step(picker, event);
  });
}

function begin(picker) {
  const search = picker.querySelector("[data-narrow]");
  if (!search) return; // its list is still on the way
  for (const row of picker.querySelectorAll("[data-pin]:not(:has(.star))")) row.append(starOf(row));
  arrange(picker.querySelector(".options"));
  search.value = "";
  narrow(picker);
  (picker.querySelector(":checked, [aria-current]") ?? search).scrollIntoView({ block: "nearest" });
  search.focus();
}

function narrow(picker) {
  const typed = picker.querySelector("[data-narrow]").value;
  const words = typed.toLowerCase().split(/\s+/);
  const options = optionsOf(picker);
  for (const option of options)
    option.parentElement.hidden = !words.every((word) => option.textContent.toLowerCase().includes(word));
  for (const group of picker.querySelectorAll(".group")) group.hidden = Boolean(typed);
  picker.querySelector(".none").hidden = options.some((option) => !option.parentElement.hidden);
}

const pinned = () => JSON.parse(localStorage.getItem(PINNED) ?? "[]");

function starOf(row) {
  const star = Object.assign(document.createElement("button"), { type: "button", className: "icon-button star" });
  star.setAttribute("aria-label", tr("Pin {name}", { name: row.querySelector("strong").textContent }));
  star.innerHTML = iconOf("pin");
  return star;
}

function pin(star) {
  const name = star.parentElement.dataset.pin;
  const others = pinned().filter((other) => other !== name);
  localStorage.setItem(PINNED, JSON.stringify(others.length < pinned().length ? others : [...others, name]));
  arrange(star.closest(".options"));
  star.focus();
}

/** Order the options: first those that cannot be pinned, then the pinned ones, then the others in their own order. */
function arrange(list) {
  list.order ??= [...list.children];
  const names = pinned();
  const isPinned = (row) => names.includes(row.dataset.pin);
  const fixed = list.order.filter((row) => row.matches(".option-row:not([data-pin])"));
  const first = [...fixed, ...list.order.filter(isPinned)];
  list.replaceChildren(...first, ...list.order.filter((row) => !first.includes(row)));
  for (const star of list.querySelectorAll(".star")) star.setAttribute("aria-pressed", isPinned(star.parentElement));
}

/**
 * Take an option by Enter. In the search field it is the first one that is left. A button handles Enter itself, and a
 * radio button has been ticked by the arrows.
 */
function take(picker, event) {
  const inSearch = event.target.matches("[data-narrow]");
  if (!inSearch && event.target.matches("button")) return void done(picker);
  event.preventDefault(); // Enter would send the message
  const first = inSearch && optionsOf(picker).find(isOpenTo);
  if (first) (first.control ?? first).click();
  done(picker);
}

/** Take the first option that is left of a list that stays open, without sending the form. */
function takeListed(list, event) {
  event.preventDefault();
  optionsOf(list).find(isOpenTo)?.control?.click();
}

/** Move the focus by an arrow key from the search field through a list of buttons. Radio buttons do so themselves. */
function step(picker, event) {
  if (event.target.matches("[type='radio']")) return;
  const options = optionsOf(picker)
    .filter(isOpenTo)
    .map((option) => option.control ?? option);
  const place = options.indexOf(event.target) + (event.key === "ArrowDown" ? 1 : -1);
  event.preventDefault();
  (options[place] ?? picker.querySelector("[data-narrow]")).focus();
}

/** Close a picker, once the click that chose has had its effect. */
function done(picker) {
  setTimeout(() => {
    picker.hidePopover();
    document.getElementById("text").focus();
  });
}
