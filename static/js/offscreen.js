// Of a long conversation the document holds what is near: entries far away keep their height, and their content waits
// beside the document until the reader comes closer. Rows of such entries stand in boxes that are laid out as one:
// 2,000 of them, each by itself, cost every frame of a scroll 30 ms.

const MOST = 3_000; // elements of the conversation, above which it is made lighter
const LEAST = 2_600; // and to how many: what is moved at once fits into a frame
const NEAR = 1; // heights of the window; what comes so near is brought back, before it is in sight
const FAR = 1.5; // what is nearer stays
const BOXED = 3; // what is further is put into boxes
const ROW = 40; // entries of a box, at most
const SHORT_ROW = 8; // of fewer entries no box is made
const WAIT_MS = 200;

export function startOffscreen(scroller, entries) {
  const away = new WeakMap(); // entry: its content
  const inside = entries.getElementsByTagName("*");
  let timer = 0;
  let isLight = false; // whether anything is away

  function later() {
    timer ||= setTimeout(() => {
      timer = 0;
      if (inside.length > MOST) lighten();
      else if (isLight) makeBoxes();
    }, WAIT_MS);
  }

  /** How far a place is from what is in sight, in heights of the window. */
  function distances() {
    const { top, bottom, height } = scroller.getBoundingClientRect();
    return (box) => Math.max(top - box.bottom, box.top - bottom) / height;
  }

  function lighten() {
    const distance = distances();
    const found = [];
    for (const entry of entries.children) {
      if (
        away.has(entry) ||
        !entry.firstElementChild ||
        !entry.matches("[data-position]:not(button, [hidden], .editing, :target)") ||
        entry.contains(document.activeElement)
      )
        continue;
      const box = entry.getBoundingClientRect();
      if (distance(box) > FAR) found.push({ entry, distance: distance(box), height: box.height });
    }
    found.sort((one, other) => other.distance - one.distance);
    let left = inside.length; // counting them anew after each change takes longer than the change
    for (const { entry, height } of found) {
      if (left <= LEAST) break;
      left -= entry.getElementsByTagName("*").length;
      putAway(entry, height);
    }
    if (found.length) later();
  }

  function putAway(entry, height) {
    const content = document.createDocumentFragment();
    content.append(...entry.childNodes);
    away.set(entry, content);
    entry.classList.add("away");
    entry.style.height = `${height}px`;
    isLight = true;
  }

  function bringBack(entry) {
    entry.append(away.get(entry));
    away.delete(entry);
    entry.classList.remove("away");
    entry.removeAttribute("style");
  }

  function makeBoxes() {
    const distance = distances();
    const rows = [[]];
    for (const entry of entries.children) {
      const box =
        away.has(entry) || entry.matches(".tool-group:not(:focus), [hidden][data-position]")
          ? entry.getBoundingClientRect()
          : null;
      if (box && distance(box) > BOXED) rows.at(-1).push({ entry, box });
      if (!box || rows.at(-1).length === ROW) rows.push([]);
    }
    const long = rows.filter((row) => row.length >= SHORT_ROW);
    const margins = long.map((row) => [
      getComputedStyle(row[0].entry).marginTop,
      getComputedStyle(row.at(-1).entry).marginBottom,
    ]);
    long.forEach((row, index) => {
      const holder = Object.assign(document.createElement("div"), { className: "far" });
      holder.style.height = `${row.at(-1).box.bottom - row[0].box.top}px`;
      [holder.style.marginTop, holder.style.marginBottom] = margins[index];
      row[0].entry.before(holder);
      holder.append(...row.map(({ entry }) => entry));
    });
  }

  function near(name) {
    const distance = distances();
    return [...entries.getElementsByClassName(name)].filter(
      (place) => place.parentNode === entries && distance(place.getBoundingClientRect()) < NEAR,
    );
  }

  scroller.addEventListener(
    "scroll",
    () => {
      if (isLight) {
        near("far").forEach(open);
        near("away").forEach(bringBack);
      }
      later();
    },
    { passive: true },
  );
  document.addEventListener("dominds:placed", later);
  entries.addEventListener("htmx:afterSettle", later);
  later();
}

const open = (holder) => holder.replaceWith(...holder.childNodes);

/** A place that one is led to, or all places, laid out by themselves again. */
export function openBoxes(entries, place = null) {
  for (const holder of entries.querySelectorAll(":scope > .far")) if (!place || holder.contains(place)) open(holder);
}
