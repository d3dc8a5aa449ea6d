// The open end of an answer, drawn while it grows: lists, tables, headings, quotes, code and emphasis. Whatever the
// model writes, only such elements and text are made. The server's HTML replaces them when a block is finished.

const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+)(.*)$/;
// A beginning of a line that more characters can turn into something else.
const UNDECIDED = /^\s*([-+]|\*{1,3}|\d{1,9}[.)]|#{1,6}|>|[`~]{1,3}|([-*_]\s*){3,})?\s*$/;
const UNDECIDED_ROW = /^[\s|:-]*$/; // perhaps the line below a table's head
const MOST_CELLS = 64; // cells of a row
const MOST_INLINE = 4000; // longer pieces are shown without emphasis
const DEEPEST = 4;
const INLINE = new RegExp(
  [
    "\\\\([!-/:-@[-`{-~])",
    "(`+)([^`]|[^`][^]*?[^`])\\2(?!`)",
    "\\*\\*(?=\\S)([^]*?\\S)\\*\\*(?!\\*)",
    "(?<![\\w*])\\*(?=[^\\s*])([^*]*[^\\s*])\\*(?![\\w*])",
    "(?<!\\w)__(?=\\S)([^]*?\\S)__(?!\\w)",
    "(?<!\\w)_(?=[^\\s_])([^_]*[^\\s_])_(?!\\w)",
    "~~(?=\\S)([^]*?\\S)~~",
    "(?<!!)\\[([^\\]\\n]+)\\]\\((?:[^()\\s]|\\([^()\\s]*\\))*\\)",
  ].join("|"),
  "g",
);
const TAGS = { 4: "strong", 5: "em", 6: "strong", 7: "em", 8: "s", 9: "span" };

export class Tail {
  constructor(box) {
    Object.assign(this, {
      box,
      open: "",
      lists: [],
      leaf: null,
      table: null,
      fence: "",
      made: [],
      saved: null,
      dirty: new Set(),
    });
  }

  append(text) {
    this.takeBack();
    const lines = (this.open + text).split("\n");
    this.open = lines.pop();
    for (const line of lines) this.read(line);
    this.made = [];
    this.saved = {
      lists: [...this.lists],
      leaf: this.leaf,
      table: this.table,
      fence: this.fence,
      source: this.leaf?.source,
    };
    if (this.fence ? this.open : !this.isUndecided()) this.read(this.open);
    for (const leaf of this.dirty) draw(leaf, leaf === this.leaf);
    this.dirty.clear();
    this.box.querySelector(".at-end")?.classList.remove("at-end");
    this.leaf?.element.classList.add("at-end");
  }

  isUndecided() {
    return (
      UNDECIDED.test(this.open) ||
      UNDECIDED_ROW.test(this.open) ||
      (this.lists.length > 0 && /^\s*\d{1,9}$/.test(this.open))
    );
  }

  /** Undo what was drawn for the last line, which was incomplete. */
  takeBack() {
    if (!this.saved) return;
    for (const element of this.made) element.remove();
    const { source, ...before } = this.saved;
    Object.assign(this, before, { lists: [...before.lists] });
    if (this.leaf && this.leaf.source !== source) this.write(source);
  }

  write(source) {
    this.leaf.source = source;
    this.dirty.add(this.leaf);
  }

  read(line) {
    if (this.fence) return this.readCode(line);
    if (!line.trim()) {
      this.leaf = this.table = null;
      return;
    }
    const indent = /^\s*/.exec(line)[0].length;
    const [, mark, language] = /^\s*(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/.exec(line) ?? [];
    const item = ITEM.exec(line);
    if (!item && !this.leaf) this.lists = this.lists.filter((list) => indent >= list.content);
    const begins = mark || item || /^ {0,3}(#{1,6}\s|>)/.test(line);
    if (begins && this.table) this.leaf = this.table = null;
    else if (this.table) return this.readRow(cellsOf(line), line);
    else if (!begins && this.leaf && !this.leaf.isQuote && isBelowHead(line, this.leaf.source))
      return this.turnIntoHead(line);
    else if (!this.leaf && line.trim().startsWith("|") && cellsOf(line).length <= MOST_CELLS)
      return this.beginTable(line);
    if (mark) this.beginCode(mark, language, indent);
    else if (item && (indent < 4 || this.lists.length)) this.beginItem(item, indent);
    else if (this.leaf && !/^ {0,3}#{1,6}\s/.test(line))
      this.write(`${this.leaf.source}\n${line.trim().replace(this.leaf.isQuote ? /^>\s?/ : "", "")}`);
    else this.beginBlock(line.trim());
  }

  beginItem([, , marker, space, rest], indent) {
    const tag = /\d/.test(marker) ? "ol" : "ul";
    while (this.lists.length > 1 && indent < this.lists.at(-1).indent) this.lists.pop();
    let list = this.lists.at(-1);
    if (list && indent < list.content && list.element.localName !== tag) list = void this.lists.pop();
    if (!list || indent >= list.content) {
      const element = this.put(tag);
      if (tag === "ol" && Number.parseInt(marker, 10) !== 1) element.start = Number.parseInt(marker, 10);
      list = { element };
      this.lists.push(list);
    }
    const item = list.element.appendChild(document.createElement("li"));
    this.made.push(item);
    this.lists[this.lists.length - 1] = {
      element: list.element,
      item,
      indent,
      content: indent + marker.length + Math.min(space.length, 4),
    };
    const [, ticked, text] = /^\[([ xX])\]\s+(.*)$/.exec(rest) ?? [];
    if (ticked) item.className = "task";
    this.begin("span", ticked ? `${ticked === " " ? "☐" : "☑"} ${text}` : rest);
  }

  beginBlock(line) {
    const [, marks, title] = /^(#{1,6})\s+(.*)$/.exec(line) ?? [];
    if (marks) {
      this.begin(`h${Math.min(marks.length + 2, 6)}`, title.replace(/\s#+\s*$/, ""));
    } else if (line.startsWith(">")) {
      const quote = this.put("blockquote");
      this.begin("p", line.replace(/^>\s?/, ""), quote);
      this.leaf.isQuote = true;
    } else {
      this.begin("p", line);
    }
  }

  /** Begin a table with a line that starts with a bar. The next line may show that it is none. */
  beginTable(head) {
    const box = this.put("div");
    Object.assign(box, { className: "wide", tabIndex: 0 });
    this.table = {
      box,
      head,
      element: box.appendChild(document.createElement("table")),
      width: cellsOf(head).length,
      sides: null,
    };
    this.addRow(cellsOf(head), "th");
  }

  turnIntoHead(line) {
    const lines = this.leaf.source.split("\n");
    const head = lines.pop();
    lines.length ? this.write(lines.join("\n")) : this.leaf.element.remove();
    this.beginTable(head);
    this.readRow(cellsOf(line), line);
  }

  readRow(cells, line) {
    const { box, head, element, sides } = this.table;
    if (sides) return this.addRow(cells, "td");
    if (isBelowHead(line, head)) {
      this.table.sides = cells.map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : ""));
      [...element.rows[0].cells].forEach((cell, at) => {
        cell.className = this.table.sides[at];
      });
      return;
    }
    box.remove();
    this.table = null;
    this.begin("p", `${head.trim()}\n${line.trim()}`);
  }

  addRow(cells, tag) {
    const { element, width, sides } = this.table;
    const row = (tag === "th" ? element.createTHead() : (element.tBodies[0] ?? element.createTBody())).insertRow();
    this.made.push(row);
    cells.slice(0, width).forEach((cell, at) => {
      this.begin(tag, cell, row);
      this.leaf.element.className = sides?.[at] ?? "";
    });
    for (let at = cells.length; at < width; at += 1) row.insertCell();
  }

  beginCode(mark, language, indent) {
    const box = this.put("div");
    box.className = "code";
    if (language)
      Object.assign(box.appendChild(document.createElement("div")), {
        className: "code-head",
        textContent: language.slice(0, 24),
      });
    const pre = box.appendChild(document.createElement("pre"));
    pre.tabIndex = 0;
    this.begin("code", "", pre);
    Object.assign(this.leaf, { isCode: true, indented: new RegExp(`^ {0,${indent}}`) });
    this.fence = mark;
  }

  readCode(line) {
    if (line.trim().startsWith(this.fence)) [this.fence, this.leaf] = ["", null];
    else this.write(`${this.leaf.source}${line.replace(this.leaf.indented, "")}\n`);
  }

  put(tag) {
    const element = (this.lists.at(-1)?.item ?? this.box).appendChild(document.createElement(tag));
    this.made.push(element);
    return element;
  }

  begin(tag, source, parent) {
    const element = parent ? parent.appendChild(document.createElement(tag)) : this.put(tag);
    this.leaf = { element };
    this.write(source);
  }
}

const cellsOf = (line) =>
  line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "")
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll("\\|", "|"));

/** Return whether a line is a table's delimiter row (`|---|:-:|`) for as many columns as the line above it has. */
function isBelowHead(line, above) {
  if (!UNDECIDED_ROW.test(line) || !line.includes("|")) return false;
  const cells = cellsOf(line);
  return (
    cells.length <= MOST_CELLS &&
    cells.every((cell) => /^:?-+:?$/.test(cell)) &&
    cells.length === cellsOf(above.slice(above.lastIndexOf("\n") + 1)).length
  );
}

/** Draw a piece of text. If it `isOpen`, more may follow: open emphasis ends with it, and half a mark is not shown. */
function draw({ element, source, isCode }, isOpen) {
  const only =
    element.childNodes.length === 1 && element.firstChild.nodeType === Node.TEXT_NODE ? element.firstChild : null;
  if (isCode || source.length > MOST_INLINE || !/[\\`*_~[]/.test(source)) {
    if (only && source.startsWith(only.data)) only.appendData(source.slice(only.data.length));
    else element.replaceChildren(source);
    return;
  }
  element.replaceChildren(...inline(source, 0, isOpen));
}

function inline(source, depth, isOpen = false) {
  const nodes = [];
  let from = 0;
  for (const found of source.matchAll(INLINE)) {
    if (found.index > from) nodes.push(source.slice(from, found.index));
    from = found.index + found[0].length;
    const group = found.findIndex((text, number) => number > 2 && text !== undefined);
    if (found[1]) nodes.push(found[1]);
    else if (group === 3) nodes.push(made("code", [found[3].trim()]));
    else nodes.push(made(TAGS[group], depth < DEEPEST ? inline(found[group], depth + 1) : [found[group]]));
  }
  const rest = isOpen ? source.slice(from).replace(/\[([^\]\n]+)\]\([^)\s]*$/, "$1") : source.slice(from);
  const [, before, mark, begun] = (isOpen && /^([^]*?)(\*\*|`)(?=\S)([^]*)$/.exec(rest)) || [];
  if (mark) nodes.push(before, made(mark === "`" ? "code" : "strong", [begun.replace(/[*`]+$/, "")]));
  else nodes.push(isOpen ? rest.replace(/[*`_~]{1,3}$/, "") : rest);
  return nodes.filter(Boolean);
}

function made(tag, nodes) {
  const element = document.createElement(tag);
  element.append(...nodes);
  return element;
}
