// The form of an agent: typing narrows the list of models, which is scrolled to the chosen one.
import { startPickers } from "./picker.js";

startPickers();
const chosen = document.querySelector(".model-choice :checked")?.closest(".option-row");
if (chosen) chosen.parentElement.scrollTop = chosen.offsetTop - chosen.parentElement.offsetTop - 40;
