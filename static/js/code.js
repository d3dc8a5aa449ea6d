// Buttons at blocks of code: line numbers, wrapping, download, copy.
import { iconOf } from "./page.js";
import { tr } from "./words.js";

const SUFFIXES = {
  python: "py",
  py: "py",
  javascript: "js",
  js: "js",
  typescript: "ts",
  ts: "ts",
  bash: "sh",
  sh: "sh",
  shell: "sh",
  html: "html",
  css: "css",
  json: "json",
  yaml: "yaml",
  yml: "yaml",
  sql: "sql",
  rust: "rs",
  go: "go",
  java: "java",
  c: "c",
  cpp: "cpp",
  markdown: "md",
  diff: "diff",
  toml: "toml",
};

/** Add the buttons to each block of code in a piece of the page. */
export function decorate(piece) {
  for (const code of piece.querySelectorAll(".code")) {
    const tools = Object.assign(document.createElement("div"), { className: "code-tools" });
    tools.append(
      codeButton(tr("Numbers"), "numbers"),
      codeButton(tr("Wrap"), "wrap"),
      codeButton(tr("Download"), "download"),
      codeButton(tr("Copy"), "copy"),
    );
    code.querySelector("pre").before(tools);
  }
}

function codeButton(words, name) {
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: `icon-button ${name}`,
    title: words,
    innerHTML: iconOf(name),
  });
  button.setAttribute("aria-label", words);
  if (name !== "download" && name !== "copy") button.setAttribute("aria-pressed", "false");
  button.dataset[name] = "";
  return button;
}

/** Put each line into an element, whose number is not copied. A colour that spans several lines ends with the first. */
function number(code) {
  if (code.querySelector(".code-line")) return;
  const lines = code.innerHTML.replace(/\n$/, "").split("\n");
  code.innerHTML = lines.map((line) => `<span class="code-line">${line}</span>`).join("\n");
}

/** Have the buttons work, except for copying, which `app.js` does for all buttons that copy. */
export function startCode() {
  document.addEventListener("click", (event) => {
    const target = event.target.closest(".code-tools button");
    const code = target?.closest(".code");
    if (target?.matches(".wrap")) target.setAttribute("aria-pressed", code.classList.toggle("wraps"));
    else if (target?.matches(".numbers")) {
      number(code.querySelector("code"));
      target.setAttribute("aria-pressed", code.classList.toggle("numbered"));
    } else if (target?.matches(".download")) {
      const href = URL.createObjectURL(new Blob([code.querySelector("pre").textContent], { type: "text/plain" }));
      const name = `code.${SUFFIXES[code.querySelector(".code-head")?.textContent] ?? "txt"}`;
      Object.assign(document.createElement("a"), { href, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(href), 10_000);
    }
  });
}
