// In a long conversation the browser lays out only what is near. Everything stays in the document, for the browser's
// search, for print and for screen readers: entries far away are put into boxes, and a box is skipped as a whole until
// it comes near. Skipping each of 2,000 entries by itself cost 30 ms in every frame of a scroll.

const FEW = 30; // up to so many entries, no boxes are made
const BOXED = 3; // heights of the window from which on entries are put into boxes
const ROW = 12; // entries in a box at most, since they are laid out at once
const SHORT_ROW = 4; // entries in a box at least
const WAIT_MS = 200;

export function startOffscreen(scroller, entries) {
  let timer = 0;
  const near = { root: scroller, rootMargin: "100% 0%" };
  // The event of content-visibility would serve as well, but WebKit does not send all of them.
  const nearness = new IntersectionObserver(
    (seen) => seen.forEach(({ target, isIntersecting }) => (isIntersecting ? colour : fade)(target)),
    near,
  );

  function later() {
    timer ||= setTimeout(() => {
      timer = 0;
      if (entries.childElementCount > FEW) makeBoxes();
    }, WAIT_MS);
  }

  /** Return a function for the distance of a box from what is in sight, in heights of the window. */
  function distances() {
    const { top, bottom, height } = scroller.getBoundingClientRect();
    return (box) => Math.max(top - box.bottom, box.top - bottom) / height;
  }

  const canBeBoxed = (entry) =>
    entry.matches("[data-position]:not(button, .editing, :target, .live), .tool-group") &&
    !entry.contains(document.activeElement);

  function makeBoxes() {
    const distance = distances();
    const rows = [[]];
    for (const entry of entries.children) {
      const box = entry.getBoundingClientRect();
      const isFar = canBeBoxed(entry) && distance(box) > BOXED;
      if (isFar) rows.at(-1).push({ entry, box });
      if (!isFar || rows.at(-1).length === ROW) rows.push([]);
    }
    for (const row of rows.filter(({ length }) => length >= SHORT_ROW)) {
      const holder = Object.assign(document.createElement("div"), { className: "far" });
      holder.style.containIntrinsicBlockSize = `${row.at(-1).box.bottom - row[0].box.top}px`;
      row[0].entry.before(holder);
      holder.append(...row.map(({ entry }) => entry));
      nearness.observe(holder);
    }
  }

  scroller.addEventListener("scroll", later, { passive: true });
  // An entry that somebody acts on is taken out of its box.
  for (const kind of ["pointerdown", "focusin"])
    entries.addEventListener(kind, ({ target }) => {
      const holder = target.closest(".far");
      if (holder) open(holder);
    });
  addEventListener("beforeprint", () => openBoxes(entries));
  addEventListener("afterprint", later);
  document.addEventListener("dominds:placed", later);
  entries.addEventListener("htmx:afterSettle", later);
  later();
}

function open(holder) {
  colour(holder);
  holder.replaceWith(...holder.childNodes);
}

// Nine tenths of a long dialog's nodes are icons and the colours of code. Boxes that are skipped keep only their words,
// which are what search, print and screen readers need.
const colours = new WeakMap(); // the coloured HTML of each block of code
const icons = new WeakMap(); // the drawing of each icon

function fade(holder) {
  if (!getSelection().isCollapsed) return; // replacing nodes would end a selection across them
  for (const code of holder.querySelectorAll("pre > code:has(*)")) {
    colours.set(code, code.innerHTML);
    code.textContent = code.textContent;
  }
  for (const use of holder.querySelectorAll(".icon > use")) {
    icons.set(use.parentElement, use);
    use.remove();
  }
}

function colour(holder) {
  for (const code of holder.querySelectorAll("pre > code")) {
    if (colours.has(code)) code.innerHTML = colours.get(code);
    colours.delete(code);
  }
  for (const icon of holder.querySelectorAll(".icon:empty")) if (icons.has(icon)) icon.append(icons.get(icon));
}

/** Take the entries out of the box that holds `place`, or out of all boxes. */
export function openBoxes(entries, place = null) {
  for (const holder of entries.querySelectorAll(":scope > .far")) if (!place || holder.contains(place)) open(holder);
}
