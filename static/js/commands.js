// Commands: what the page's buttons do, by name, after a slash in the composer and in the palette.
import { Choices, element, narrowed } from "./choices.js";
import { textOf } from "./page.js";
import { language, tr } from "./words.js";

/** Return the page's commands. Each clicks a button or link, or shows a section, with `rest` in its field. */
export function commands() {
  return [...document.querySelectorAll("[data-do]")]
    .filter((source) => !source.disabled && !source.closest("[hidden]"))
    .sort((one, other) => isInMenu(one) - isInMenu(other)) // first those that act on the conversation
    .map((source) => {
      const [title, note] = wordsOf(source);
      return {
        slash: source.dataset.do,
        name: source.dataset.do,
        title,
        note,
        hint: note ? `${title} · ${note}` : title,
        isBehind: Boolean(source.closest(".ways")), // another command leads to it
        run: (rest = "") => (source.matches("details, section") ? reveal(source, rest) : source.click()),
      };
    });
}

const isInMenu = (source) => Number(Boolean(source.closest(".menu")));

/** Return a command's title, and the note beside it, such as where it leads or what it saves. */
function wordsOf(source) {
  if (source.dataset.words) return [source.dataset.words, textOf(source.querySelector(".note") ?? new Text())];
  const copy = (source.querySelector("summary") ?? source).cloneNode(true);
  copy.querySelectorAll(".differs").forEach((node) => node.remove());
  const notes = [...copy.querySelectorAll(".muted")];
  notes.forEach((node) => node.remove());
  return [textOf(copy), notes.map(textOf).join(" ")];
}

function reveal(details, rest) {
  const popover = details.closest("[popover]");
  if (popover && !popover.checkVisibility()) popover.showPopover();
  for (let outer = details; outer; outer = outer.parentElement.closest("details")) outer.open = true;
  const field = details.matches("section") ? details : details.querySelector("textarea, input:not([type='hidden'])");
  if (rest) field.value = rest;
  field.focus();
  field.scrollIntoView({ block: "nearest" });
}

/** Return the person's prompt templates as commands that insert them, or null if the server cannot be asked. */
async function ownTemplates(field) {
  const answer = await fetch("/api/templates").catch(() => null);
  if (!answer?.ok) return null;
  return (await answer.json()).map(({ name, text }) => ({
    slash: `/${name}`,
    name: `/${name}`,
    hint: text.replace(/\s+/g, " ").slice(0, 80),
    run: (rest = "") => {
      field.value = filled(text, rest);
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
      selectBlank(field, 0);
    },
  }));
}

const BLANK = /\{\{\s*[^{}]+?\s*\}\}/g;

/** Return a template's text with date and time filled in. `rest`, typed behind its name, fills the first blank. */
function filled(text, rest) {
  const now = new Date();
  const known = {
    date: now.toLocaleDateString(language),
    time: now.toLocaleTimeString(language, { timeStyle: "short" }),
  };
  const begun = text.replace(BLANK, (blank) => known[blank.slice(2, -2).trim().toLowerCase()] ?? blank);
  if (!rest) return begun;
  const first = begun.match(BLANK)?.[0];
  return first ? begun.replaceAll(first, () => rest) : `${begun}\n\n${rest}`;
}

/** Select the first blank at or after a place, to be typed over, and return whether there is one. */
function selectBlank(field, from) {
  BLANK.lastIndex = from;
  const found = BLANK.exec(field.value);
  if (found) field.setSelectionRange(found.index, BLANK.lastIndex);
  return Boolean(found);
}

/** Run commands that are typed into the composer. A message that begins with a command's name is not sent. */
export function startSlash(form) {
  const field = form.elements.namedItem("text");
  const list = element("ul", "slash", "", {
    role: "listbox",
    id: "slash",
    popover: "manual",
    tabindex: "0",
    "aria-label": tr("Commands"),
  });
  form.prepend(list);
  const clear = () => {
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const choices = new Choices(field, list, (item) => {
    clear();
    field.focus();
    item.run();
  });
  let templates = null;
  const all = () => [
    ...commands(),
    ...(templates ?? []),
    {
      slash: "/templates",
      name: "/templates",
      hint: tr("Texts of your own"),
      run: () => location.assign("/settings/templates/"),
    },
  ];
  const look = () => {
    const isSlash = /^\/\S*$/.test(field.value);
    choices.show(isSlash ? narrowed(all(), field.value.slice(1)) : []);
    if (!isSlash || templates) return;
    templates = [];
    ownTemplates(field).then((found) => {
      templates = found;
      if (found?.length) look();
    });
  };
  field.addEventListener("input", look);
  field.addEventListener("blur", () => choices.show([]));
  form.addEventListener(
    "keydown",
    (event) => {
      if (event.target !== field || choices.key(event)) return;
      if (event.key === "Tab" && !event.shiftKey && selectBlank(field, field.selectionEnd)) event.preventDefault();
      else if (event.key === "Escape" && choices.items.length) {
        choices.show([]);
        event.stopPropagation();
      } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        const [, slash, rest] = /^(\/\S+)\s+(\S[^]*)$/.exec(field.value) ?? [];
        const command = all().find((item) => item.slash === slash);
        if (!command) return;
        event.preventDefault();
        event.stopPropagation();
        clear();
        command.run(rest);
      }
    },
    true,
  ); // in the capture phase, before the composer would send
}
