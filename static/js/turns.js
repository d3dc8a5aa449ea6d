// Actions on a turn: its menu, editing and copying. Also the running time of tools.
import { duration, fetchPiece, iconOf, localTimes, standBeside, toast } from "./page.js";
import { lost, refill } from "./typed.js";
import { tr } from "./words.js";

export function startTurns() {
  const menu = document.getElementById("turn-menu");
  let beside = null; // the link that opened the menu

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-turn-menu]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (await fill(link)) show(link);
  });

  /** Fill the menu, which stays hidden, for the link's turn. Return false if another page is shown instead. */
  async function fill(link) {
    const piece = await fetchPiece(link.href);
    if (piece === null) return false;
    menu.innerHTML = piece;
    localTimes(menu);
    window.htmx?.process(menu);
    return true;
  }

  function show(link) {
    menu.showPopover();
    beside = link;
    standBeside(menu, beside);
    menu.querySelector("a, button, summary")?.focus();
  }

  document.addEventListener("click", async ({ target }) => {
    const pencil = target.closest("[data-edit-turn]");
    const link = pencil?.nextElementSibling;
    if (!pencil || !(await fill(link))) return;
    const form = menu.querySelector("form[action$='/edit/']");
    form ? editInPlace(link.closest(".turn"), form) : show(link);
  });
  if (lost.isLost && lost.action?.endsWith("/edit/")) {
    history.replaceState(null, "", `#turn-${lost.texts.seq}`); // the page scrolls there when it begins
    document.querySelector(`#turn-${lost.texts.seq} [data-edit-turn]`)?.click();
  }

  // A button under the newest answer regenerates it, as its menu does.
  const again = Object.assign(document.createElement("button"), {
    type: "button",
    className: "icon-button small again",
    title: tr("Regenerate"),
  });
  again.setAttribute("aria-label", tr("Regenerate"));
  again.innerHTML = iconOf("retry");
  again.addEventListener("click", async () => {
    const link = again.nextElementSibling;
    if (!(await fill(link))) return;
    const form = menu.querySelector("form[action$='/regenerate/']");
    form ? form.requestSubmit() : show(link);
  });
  const standUnderNewest = () => {
    const newest = [...document.querySelectorAll("#entries .turn-assistant:is(:has([data-turn-menu]), :empty)")]
      .at(-1)
      ?.querySelector("[data-turn-menu]");
    again.dataset.state = document.getElementById("state").dataset.state;
    if (newest && newest !== again.nextElementSibling) newest.before(again);
  };
  standUnderNewest();
  document.addEventListener("dominds:placed", standUnderNewest);
  menu.addEventListener(
    "toggle",
    (event) => event.target === menu && event.newState === "closed" && menu.replaceChildren(),
  );
  menu.addEventListener(
    "toggle",
    (event) => event.target.matches("details") && standBeside(menu, beside), // an unfolded form may need more room
    true,
  );
  menu.addEventListener("htmx:afterRequest", (event) => event.detail.successful && menu.hidePopover());

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy-text], [data-copy-rich]");
    if (!button) return;
    try {
      await (button.dataset.copyText
        ? copyText(button.dataset.copyText)
        : copyRich(document.querySelector(button.dataset.copyRich)));
      toast(tr("Copied."));
    } catch {
      toast(tr("This browser does not allow copying here. Select the text and copy it with your keyboard."), "error");
    }
    if (menu.contains(button)) menu.hidePopover();
  });

  setInterval(() => {
    for (const place of document.querySelectorAll("[data-since]"))
      place.textContent = duration(Math.max(0, Date.now() - new Date(place.dataset.since)));
  }, 1000);
}

/** Edit a message in its place, with the form of its menu. Enter sends it. */
function editInPlace(turn, form) {
  const field = form.querySelector("textarea");
  const end = () => {
    form.remove();
    turn.classList.remove("editing");
    turn.querySelector("[data-edit-turn]").focus();
  };
  const cancel = Object.assign(document.createElement("button"), {
    type: "button",
    className: "button small",
    textContent: tr("Cancel"),
  });
  cancel.addEventListener("click", end);
  form.querySelector("button").classList.add("primary");
  form.append(cancel);
  form.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Escape") end();
    else if (event.key === "Enter" && !event.shiftKey && event.target === field) form.requestSubmit();
    else return;
    event.preventDefault();
  });
  turn.querySelector("header").after(form);
  refill(form);
  turn.classList.add("editing");
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

/** Copy the text at an address. It is passed as a promise, since after a fetch browsers no longer allow the copy. */
function copyText(address) {
  const text = fetch(address).then((answer) => (answer.ok ? answer.blob() : Promise.reject(answer.status)));
  return navigator.clipboard.write([
    new ClipboardItem({ "text/plain": text.then((blob) => new Blob([blob], { type: "text/plain" })) }),
  ]);
}

function copyRich(body) {
  const as = (type, text) => new Blob([text], { type });
  return navigator.clipboard.write([
    new ClipboardItem({ "text/html": as("text/html", body.innerHTML), "text/plain": as("text/plain", body.innerText) }),
  ]);
}
