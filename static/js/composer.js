// The composer: Enter sends, a draft survives a reload, and the field is cleared only once the server has accepted the
// message. Each tab has its own draft. The draft of a closed tab goes to the next tab that opens the dialog.
import { startAttachments } from "./attachments.js";
import { startSlash } from "./commands.js";
import { failureOf, isPage, randomId, wasLoggedOut } from "./page.js";
import { tr } from "./words.js";

const SAVE_MS = 500;

export function startComposer(dialogId) {
  const form = document.getElementById("composer");
  const field = form.elements.namedItem("text");
  const messageId = form.elements.namedItem("client_message_id");
  const error = () => document.getElementById("sending-error");
  let key = `dominds:draft:${dialogId}`;
  let timer = 0;
  let sent = "";

  startSlash(form);
  if (!field.value) field.value = sessionStorage.getItem(key) ?? localStorage.getItem(key) ?? "";
  if (field.value && sessionStorage.getItem(`${key}:id`)) messageId.value = sessionStorage.getItem(`${key}:id`);
  const keep = () => {
    clearTimeout(timer);
    if (!field.value) sessionStorage.removeItem(`${key}:id`);
    field.value ? sessionStorage.setItem(key, field.value) : sessionStorage.removeItem(key);
  };
  keep();
  addEventListener("pagehide", () => {
    keep();
    if (field.value) localStorage.setItem(key, field.value);
  });
  addEventListener("pageshow", () => {
    // This tab has taken the draft that a closed tab left, or is itself the tab that left it and was brought back.
    if (localStorage.getItem(key) === field.value) localStorage.removeItem(key);
  });
  const attachments = startAttachments(form, {
    refuse: (sentence) => {
      error().textContent = sentence;
    },
    changed: (number) => {
      field.required = !number;
    },
  });
  const save = () => {
    clearTimeout(timer);
    timer = setTimeout(keep, SAVE_MS);
  };
  field.addEventListener("input", save);

  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return; // an input method takes this Enter
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (field.value.trim() || attachments.any)
        document.querySelector("#composer-state [data-primary]:enabled")?.click();
    } else if (event.key === "Escape") {
      document.querySelector("#composer-state [data-key='Escape']")?.focus();
    }
  });

  form.addEventListener("htmx:configRequest", (event) => {
    if (!sends(event)) event.detail.formData.delete("attachments"); // other buttons, such as Stop, send no files
  });
  form.addEventListener("htmx:beforeRequest", (event) => {
    if (!sends(event)) return;
    error().textContent = "";
    sent = field.value;
    attachments.sending();
  });
  form.addEventListener("htmx:afterRequest", (event) => {
    const { xhr } = event.detail;
    if (!sends(event) || wasLoggedOut(xhr)) return; // the draft is there again after the login
    if (xhr.status >= 200 && xhr.status < 400) {
      // htmx does not count a redirect as "successful", so the status is compared.
      field.value = unsent();
      attachments.accepted();
      keep();
      messageId.value = randomId();
      document.dispatchEvent(new Event("dominds:sent"));
    } else if (xhr.status >= 500) {
      fail(failureOf(xhr));
    } else if (xhr.status === 413 && !error().textContent) {
      error().textContent = tr("All of it together is too long for one request. Send fewer files at once.");
    } else if (isPage(xhr)) {
      error().textContent = failureOf(xhr);
    }
    if (!event.detail.successful) attachments.ended();
    field.focus({ preventScroll: true });
  });
  form.addEventListener("htmx:sendError", () => fail(tr("Not sent: no connection.")));

  /** Return the text that was typed while the message was being sent. */
  const unsent = () => (field.value.startsWith(sent) ? field.value.slice(sent.length).trimStart() : field.value);

  /** Offer a retry. It sends the same message id, even after a reload, so a repeat never makes a second message. */
  function fail(reason) {
    sessionStorage.setItem(`${key}:id`, messageId.value);
    const again = Object.assign(document.createElement("button"), {
      type: "button",
      className: "link",
      textContent: tr("Retry"),
    });
    again.addEventListener("click", () => document.querySelector("#composer-state [data-primary]:enabled")?.click());
    error().replaceChildren(tr("{reason} Your text is kept. ", { reason }), again);
  }

  /**
   * Return whether a request sends the message. The form makes such requests, and not a button, since the socket may
   * replace a button before the response comes.
   */
  function sends(event) {
    return event.detail.elt === form;
  }

  const obey = () => {
    const { maySend, mayRewrite } = document.getElementById("composer-state").dataset;
    const may = maySend === "yes";
    document.querySelector("#context-actions .ways")?.toggleAttribute("hidden", mayRewrite !== "yes");
    if (field.disabled !== may) return;
    field.disabled = !may;
    attachments.allow(may);
    field.placeholder = may ? `${field.labels[0].textContent}…` : tr("Sending is disabled");
  };
  document.addEventListener("dominds:placed", obey);
  obey();
  if (!field.disabled && matchMedia("(pointer: fine)").matches) field.focus({ preventScroll: true });

  return {
    /** Keep this branch's draft, and show that of another branch. */
    turnTo(other) {
      keep();
      key = `dominds:draft:${other}`;
      field.value = sessionStorage.getItem(key) ?? "";
      messageId.value = sessionStorage.getItem(`${key}:id`) ?? randomId();
    },
  };
}
