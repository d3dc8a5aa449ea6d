// The drawing of requests over time. Pointing at a request names it; arrow keys, a click or a drag show it below.
const WAIT_MS = 120;
const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -1e6, End: 1e6 };
let waits = 0;

/** Show a request. On the page of the context, the address names it as well. */
function choose(column) {
  column.parentElement.querySelector("[aria-current]")?.removeAttribute("aria-current");
  column.setAttribute("aria-current", "true");
  clearTimeout(waits);
  waits = setTimeout(async () => {
    await window.htmx.ajax("GET", column.href.baseVal, { target: "#moment", swap: "outerHTML" });
    if (!document.getElementById("dialog")) history.replaceState(null, "", column.href.baseVal);
  }, WAIT_MS);
}

document.addEventListener("keydown", (event) => {
  const drawing = event.target.closest(".timeline");
  if (!drawing || !(event.key in STEPS)) return;
  event.preventDefault();
  const columns = [...drawing.querySelectorAll("a")];
  const to = columns.indexOf(drawing.querySelector("[aria-current]") ?? columns.at(-1)) + STEPS[event.key];
  const column = columns[Math.min(columns.length - 1, Math.max(0, to))];
  column.focus();
  choose(column);
});

document.addEventListener("click", (event) => {
  const column = event.target.closest(".timeline a");
  if (!column || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose(column);
});

document.addEventListener("pointermove", (event) => {
  const column = event.buttons === 1 && event.target.closest?.(".timeline a");
  if (column && !column.hasAttribute("aria-current")) choose(column);
});
document.addEventListener("dragstart", (event) => event.target.closest?.(".timeline") && event.preventDefault());
