// Of a long conversation the browser lays out what is near. All of it stays in the document, where the browser's find,
// print and a screen reader reach it: rows of entries far away stand in boxes that are skipped as one, until they come
// near. 2,000 entries, each skipped by itself, cost every frame of a scroll 30 ms.

const FEW = 30; // entries, below which nothing is boxed
const BOXED = 3; // heights of the window; what is further is put into boxes
const ROW = 12; // entries of a box, at most: as many are laid out at once
const SHORT_ROW = 4; // of fewer entries no box is made
const WAIT_MS = 200;

export function startOffscreen(scroller, entries) {
  let timer = 0;
  const near = { root: scroller, rootMargin: "100% 0%" };
  // Not by the event of content-visibility: WebKit leaves some of them out.
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

  /** How far a place is from what is in sight, in heights of the window. */
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
    for (const row of rows.filter((one) => one.length >= SHORT_ROW)) {
      const holder = Object.assign(document.createElement("div"), { className: "far" });
      holder.style.containIntrinsicBlockSize = `${row.at(-1).box.bottom - row[0].box.top}px`;
      row[0].entry.before(holder);
      holder.append(...row.map(({ entry }) => entry));
      nearness.observe(holder);
    }
  }

  scroller.addEventListener("scroll", later, { passive: true });
  // Whoever acts on an entry finds it where all entries stand.
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

// Nine tenths of a long dialog's nodes are the colours of its code and its icons. What is skipped has its words alone, which
// are what find, print and a reader look for.
const colours = new WeakMap(); // of a block of code, its text with them
const icons = new WeakMap(); // of an icon, what it shows

function fade(holder) {
  if (!getSelection().isCollapsed) return; // whoever selects across it keeps what they have selected
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

/** A place that one is led to, or all places, laid out by themselves again. */
export function openBoxes(entries, place = null) {
  for (const holder of entries.querySelectorAll(":scope > .far")) if (!place || holder.contains(place)) open(holder);
}
