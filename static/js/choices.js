// A list of choices under a field. The field keeps the focus: typing narrows the list, arrows move in it, Enter takes.

export class Choices {
  /** `list` has role=listbox. An item has a name and perhaps a hint and a group; the chosen one is passed to `take`. */
  constructor(field, list, take) {
    Object.assign(this, { field, list, take });
    this.items = [];
    this.active = 0;
    field.setAttribute("aria-controls", list.id);
    field.setAttribute("aria-autocomplete", "list");
    list.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // the field keeps the focus
      this.isPressed = true;
    });
    addEventListener("pointerup", () => {
      this.isPressed = false;
      setTimeout(() => this.later && this.show(this.later)); // after the click
    });
    list.addEventListener("click", (event) => {
      this.later = null;
      const option = event.target.closest("[role='option']");
      if (option) take(this.items[Number(option.dataset.number)]);
    });
  }

  show(items) {
    this.later = this.isPressed ? items : null; // while an option is pressed, it must stay until its click
    if (this.isPressed) return;
    this.items = items;
    const parts = [];
    items.forEach((item, number) => {
      if (item.group && item.group !== items[number - 1]?.group)
        parts.push(element("li", "choice-group", item.group, { role: "presentation" }));
      const option = element("li", "choice-option", "", { role: "option", id: `${this.list.id}-${number}` });
      option.dataset.number = number;
      option.append(element("span", "cut", item.name), element("span", "muted cut", item.hint ?? ""));
      parts.push(option);
    });
    this.list.replaceChildren(...parts);
    this.list.popover ? this.list.togglePopover(items.length > 0) : (this.list.hidden = !items.length);
    this.activate(0);
  }

  activate(number) {
    this.active = number;
    for (const option of this.list.querySelectorAll("[role='option']"))
      option.setAttribute("aria-selected", String(Number(option.dataset.number) === number));
    const option = this.list.querySelector("[aria-selected='true']");
    option
      ? this.field.setAttribute("aria-activedescendant", option.id)
      : this.field.removeAttribute("aria-activedescendant");
    option?.scrollIntoView({ block: "nearest" });
  }

  /** Handle a key, and return whether it was for the list. */
  key(event) {
    const count = this.items.length;
    if (!count || event.isComposing || event.keyCode === 229) return false;
    if (event.key === "ArrowDown") this.activate((this.active + 1) % count);
    else if (event.key === "ArrowUp") this.activate((this.active + count - 1) % count);
    else if (event.key === "Enter" || event.key === "Tab") this.take(this.items[this.active]);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }
}

export function element(tag, name, text, attributes = {}) {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/**
 * Return the items whose name or hint contains every word, those first whose name begins with the first word. A command
 * to which another command leads (`isBehind`) is found only by its whole name.
 */
export function narrowed(items, typed) {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = items.filter((item) =>
    item.isBehind
      ? item.slash === `/${words.join(" ")}`
      : words.every((word) => `${item.name} ${item.hint ?? ""} ${item.slash ?? ""}`.toLowerCase().includes(word)),
  );
  return words.length ? found.sort((one, other) => begins(other, words[0]) - begins(one, words[0])) : found;
}

const begins = (item, word) =>
  Number([item.name, item.slash?.slice(1)].some((name) => name?.toLowerCase().startsWith(word)));
