// Texts of the scripts in the page's language. English stands in the scripts; other languages bring a file (`make
// words`).

/** `{name}` stands for a value. */
export function tr(text, values = {}) {
  return (globalThis.phrases?.[text] ?? text).replace(/{(\w+)}/g, (whole, name) => values[name] ?? whole);
}

export const language = document.documentElement.lang.toLowerCase();
