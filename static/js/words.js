// Texts of the scripts in the page's language. The English texts are in the scripts; `make words` collects them for
// translation, and each other language has a file of phrases.

/** Return a text in the page's language. Each `{name}` in it is replaced by a value. */
export function tr(text, values = {}) {
  return (globalThis.phrases?.[text] ?? text).replace(/{(\w+)}/g, (whole, name) => values[name] ?? whole);
}

export const language = document.documentElement.lang.toLowerCase();
