// Of a long conversation the document holds what is near: entries far away keep their height, and their content waits beside the
// document until the reader comes closer.

const MOST = 3_000; // elements of the conversation, above which it is made lighter
const LEAST = 2_000; // and to how many
const FAR = 1.5; // heights of the window; what is nearer stays
const NEAR = "100% 0px"; // what comes so near is brought back, before it is in sight
const WAIT_MS = 200;

export function startOffscreen(scroller, entries) {
  const away = new WeakMap(); // entry: its content
  const inside = entries.getElementsByTagName("*");
  let timer = 0;

  const near = new IntersectionObserver(
    (seen) => seen.forEach(({ isIntersecting, target }) => isIntersecting && bringBack(target)),
    { root: scroller, rootMargin: NEAR },
  );

  function later() {
    timer ||= setTimeout(() => {
      timer = 0;
      if (inside.length > MOST) lighten();
    }, WAIT_MS);
  }

  function lighten() {
    const { top, bottom, height } = scroller.getBoundingClientRect();
    const found = [];
    for (const entry of entries.querySelectorAll(":scope > [data-position]")) {
      if (away.has(entry) || !entry.firstElementChild || entry.matches("button, [hidden], .editing, :target") || entry.contains(document.activeElement)) continue;
      const box = entry.getBoundingClientRect();
      const distance = Math.max(top - box.bottom, box.top - bottom);
      if (distance > FAR * height) found.push({ entry, distance, height: box.height });
    }
    found.sort((one, other) => other.distance - one.distance);
    for (const { entry, height: own } of found) {
      if (inside.length <= LEAST) break;
      putAway(entry, own);
    }
  }

  function putAway(entry, height) {
    const content = document.createDocumentFragment();
    content.append(...entry.childNodes);
    away.set(entry, content);
    entry.style.boxSizing = "border-box";
    entry.style.height = `${height}px`;
    near.observe(entry);
  }

  function bringBack(entry) {
    near.unobserve(entry);
    entry.append(away.get(entry));
    away.delete(entry);
    entry.removeAttribute("style");
    later();
  }

  scroller.addEventListener("scroll", later, { passive: true });
  document.addEventListener("dominds:placed", later);
  entries.addEventListener("htmx:afterSettle", later);
  later();
}
