// Say what a column stands for while it is pointed at, and go from column to column by arrow keys.

import { DATE } from "./page.js";

const drawing = document.querySelector(".timeline");

if (drawing) {
  const columns = [...drawing.querySelectorAll("a")];
  const words = document.getElementById("moment");
  const say = (column) => {
    words.textContent = `${DATE.format(new Date(column.dataset.at))} · ${column.getAttribute("aria-label")}`;
  };
  for (const kind of ["pointerover", "focusin"]) {
    drawing.addEventListener(kind, (event) => {
      const column = event.target.closest("a");
      if (column) say(column);
    });
  }
  const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -columns.length, End: columns.length };
  drawing.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const from = columns.indexOf(document.activeElement);
    const to = from < 0 ? columns.length - 1 : from + step;
    columns[Math.min(columns.length - 1, Math.max(0, to))].focus();
  });
}
