// The palette (Ctrl/Cmd+K): dialogs, agents and the page's commands, by name.
import { SIZES, THEMES, wear, write } from "./appearance.js";
import { Choices, element, narrowed } from "./choices.js";
import { commands } from "./commands.js";
import { textOf } from "./page.js";
import { tr } from "./words.js";

const SEARCH_MS = 200;
let palette = null;
let agents = null;

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
  if (!("person" in document.body.dataset)) return;
  event.preventDefault();
  palette ??= build();
  palette.open ? palette.close() : palette.begin();
});

function build() {
  const dialog = element("dialog", "palette", "", { "aria-label": tr("Go to, or do") });
  const field = element("input", "", "", {
    type: "search",
    role: "combobox",
    "aria-expanded": "true",
    "aria-label": tr("Dialogs, agents, actions"),
    placeholder: tr("Dialogs, agents, actions"),
    autocomplete: "off",
  });
  const list = element("ul", "palette-list", "", { role: "listbox", id: "palette-list", "aria-label": tr("Found") });
  const none = element("p", "muted", tr("Nothing found."), { role: "status" });
  dialog.append(field, list, none);
  document.body.append(dialog);
  let timer = 0;
  let found = [];
  const choices = new Choices(field, list, (item) => {
    dialog.close();
    item.run();
  });
  const show = () => {
    const here = narrowed([...actions(), ...((field.value && agents) || [])], field.value);
    choices.show([...found, ...here].sort((one, other) => order(one) - order(other)));
    none.hidden = choices.items.length > 0;
  };
  const look = async () => {
    const typed = field.value;
    const dialogs = await foundDialogs(typed);
    agents ??= await allAgents();
    if (typed !== field.value) return;
    found = dialogs;
    show();
  };
  field.addEventListener("input", () => {
    found = [];
    show();
    clearTimeout(timer);
    timer = setTimeout(look, SEARCH_MS);
  });
  field.addEventListener("keydown", (event) => choices.key(event));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.begin = () => {
    field.value = "";
    found = [];
    dialog.showModal();
    show();
    look();
  };
  return dialog;
}

const GROUPS = {
  dialogs: tr("Dialogs"),
  here: tr("This page"),
  agents: tr("New dialog with"),
  pages: tr("Go to"),
  appearance: tr("Appearance"),
};
const order = (item) => Object.values(GROUPS).indexOf(item.group);
const go = (href) => () => location.assign(href);

function actions() {
  const pages = [...document.querySelectorAll("[data-key='n'], .nav-links a")];
  return [
    ...commands().map((item) => ({ ...item, name: item.title, hint: item.note || item.slash, group: GROUPS.here })),
    ...pages.map((link) => ({ name: textOf(link), group: GROUPS.pages, run: () => link.click() })),
    { name: tr("Keyboard"), hint: "?", group: GROUPS.pages, run: () => document.getElementById("keys").showPopover() },
    ...Object.entries(THEMES).map(([theme, words]) => ({
      name: tr("Theme: {theme}", { theme: words }),
      group: GROUPS.appearance,
      run: () => wear(theme),
    })),
    ...Object.entries(SIZES).map(([size, words]) => ({
      name: tr("Text size: {size}", { size: words }),
      group: GROUPS.appearance,
      run: () => write(size),
    })),
  ];
}

/** Return the dialogs that the navigation's search finds. */
async function foundDialogs(typed) {
  const answer = await ask(`/dialogs/?q=${encodeURIComponent(typed)}`, {
    "HX-Request": "true",
    "HX-Target": "nav-dialogs",
  });
  const holder = document.createElement("template");
  holder.innerHTML = (await answer?.text()) ?? "";
  const links = [...holder.content.querySelectorAll("li a")].slice(0, typed ? 20 : 5);
  return links.map((link) => ({
    name: textOf(link.querySelector(".cut")),
    hint: link.querySelector(".state-dot").title,
    group: GROUPS.dialogs,
    run: go(link.href),
  }));
}

async function allAgents() {
  const listed = (await (await ask("/api/agents"))?.json()) ?? [];
  return listed
    .filter((agent) => agent.usable)
    .map((agent) => ({
      name: agent.name,
      hint: agent.model,
      group: GROUPS.agents,
      run: go(`/?agent=${encodeURIComponent(agent.id)}`),
    }));
}

async function ask(address, headers = {}) {
  try {
    const answer = await fetch(address, { headers });
    return answer.ok ? answer : null;
  } catch {
    return null; // the commands, which need no server, stay
  }
}
