// The details beside a conversation. Once opened, they stay open in this browser until they are closed. In a narrow
// window they are a popover, which does not stay.
const WIDE = matchMedia("(min-width: 1181px)");
const KEPT = "dominds:side";
const root = document.documentElement;
const side = document.getElementById("side");
const opener = document.querySelector(".bar [popovertarget='side']");

// Types of events that change the details. The details measure the whole context, so they are fetched only while they
// are visible.
const CHANGES = new Set(["generation", "health", "model", "question", "remediation", "reminder", "round", "state"]);
const GATHERED_MS = 150;
let waits = 0;

const isBeside = () => WIDE.matches && root.dataset.side === "open";

function tell() {
  WIDE.matches ? opener.setAttribute("aria-expanded", isBeside()) : opener.removeAttribute("aria-expanded");
}

export function startSide() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[popovertarget='side']");
    if (!button) return;
    document.getElementById("context-popover").hidePopover();
    if (!WIDE.matches) return;
    event.preventDefault();
    const had = side.contains(document.activeElement);
    root.dataset.side = isBeside() ? "closed" : "open";
    localStorage.setItem(KEPT, root.dataset.side);
    tell();
    if (had) opener.focus();
  });
  WIDE.addEventListener("change", tell);
  tell();
}

/**
 * Fetch the details again if they are visible, once for all events of a moment. Details that are opened later are
 * fetched then.
 */
export function refreshDetails(kind) {
  if (waits || !CHANGES.has(kind)) return;
  waits = setTimeout(() => {
    waits = 0;
    for (const place of document.querySelectorAll("#details, #context-actions"))
      if (place.checkVisibility()) window.htmx.trigger(place, "stale");
  }, GATHERED_MS);
}
