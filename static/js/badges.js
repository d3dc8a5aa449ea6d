// The number of questions that wait for this person: in the navigation, in the title, and as a toast or a notification.
// The same frame brings the states of their dialogs, and their settings.
import { applyPieces, toast } from "./page.js";
import { markDialogs } from "./sidebar.js";
import { tr } from "./words.js";

let known = null;
let isOldReported = false;

export function showBadges(frame) {
  applyPieces(frame.html);
  markDialogs(frame.dialogs);
  showAppearance(frame.look);
  if (frame.build !== document.body.dataset.build && !isOldReported) {
    isOldReported = true;
    toast(tr("Dominds was updated. Reload this page."), "ask", location.href);
  }
  navigator.setAppBadge?.(frame.questions).catch(() => {}); // the badge of the installed app's icon
  const isSaid = !frame.questions || document.querySelector("[aria-current] > #badge"); // the page is the inbox
  document.title = (isSaid ? "" : `(${frame.questions}) `) + document.title.replace(/^\(\d+\) /, "");
  const isNew = known !== null && frame.newest && frame.questions > known.count && frame.newest.id !== known.newest;
  known = { count: frame.questions, newest: frame.newest?.id };
  if (isNew) tell(frame.newest);
}

/** Apply settings that were saved in another tab. */
function showAppearance(appearance) {
  document.documentElement.dataset.theme = appearance.theme;
  document.body.dataset.notify = appearance.notify;
  const bar = document.getElementById("breaking");
  if (!bar) return;
  Object.assign(bar.dataset, appearance.breaking);
  if (appearance.breaking.shown === "no") bar.hidden = true;
}

async function tell(question) {
  const address = `/q4h/${question.id}/`;
  const isHere = document.getElementById("dialog")?.dataset.dialog === question.dialog;
  if (isHere && !document.hidden) return; // the page's banner shows the question
  const wanted =
    document.body.dataset.notify === "on" && "Notification" in window && Notification.permission === "granted";
  if (wanted && document.hidden) {
    const [title, shown] = [
      tr("A question waits: {title}", { title: question.title }),
      { body: question.text, tag: question.id, data: { path: address } },
    ];
    const worker = await navigator.serviceWorker?.getRegistration();
    // The worker's notification has the same tag as a pushed one about the question, so one replaces the other.
    if (worker) return worker.showNotification(title, shown);
    const note = new Notification(title, shown);
    note.onclick = () => {
      focus();
      location.assign(address);
    };
  } else {
    toast(tr("A question waits: {title}", { title: question.title }), "ask", address);
  }
}
