// The form of an agent: what is typed narrows the list of models, which begins at the chosen one.
import { startPickers } from "./picker.js";

startPickers();
const chosen = document.querySelector(".model-choice :checked")?.closest(".option-row");
if (chosen) chosen.parentElement.scrollTop = chosen.offsetTop - chosen.parentElement.offsetTop - 40;
