// The dialog page: applies the events that the socket brings, in the order of their numbers.
import { startAsked } from "./asked.js";
import { showBadges } from "./badges.js";
import { endBreaking, showBreaking } from "./breaking.js";
import { decorate, startCode } from "./code.js";
import { startComposer } from "./composer.js";
import { LiveText } from "./live_text.js";
import { Follower } from "./follow.js";
import { openBoxes, startOffscreen } from "./offscreen.js";
import { announce, applyPieces, localTimes, textOf, toast } from "./page.js";
import { startPickers } from "./picker.js";
import { refreshDetails, startSide } from "./side.js";
import { Connection } from "./socket.js";
import { foldTools, showLine, unfold } from "./tools.js";
import { startTurns } from "./turns.js";
import { startVersions } from "./versions.js";
import { language, tr } from "./words.js";

const KEPT_ENTRIES = 200;
const CONNECTION_WORDS = {
  live: tr("Live"),
  reconnecting: tr("Reconnecting…"),
  offline: tr("Offline"),
  polling: tr("Live updates blocked: asking every 2 s"),
};

const LEVELS = { healthy: tr("healthy"), caution: tr("caution"), critical: tr("critical"), unknown: tr("unknown") };

const root = document.getElementById("dialog");
const entries = document.getElementById("entries");
const transcript = document.getElementById("transcript");
const follower = new Follower(transcript, entries, document.getElementById("jump"));
const newLiveText = () =>
  new LiveText(entries, document.querySelector("#text").labels[0].dataset.who, () => connection.restart());
let liveText;
let seq;
let state;
let level;

const connection = new Connection({
  path: () => `/ws/dialogs/${root.dataset.dialog}/?after=${seq}&of=${root.dataset.of}&lang=${language}`,
  pollPath: () => `/d/${root.dataset.dialog}/frames?after=${seq}&of=${root.dataset.of}`,
  onFrame: receive,
  onState: showConnection,
});

function receive(frame) {
  if (frame.type === "draft") return liveText.show(frame);
  if (frame.type === "badges") return showBadges(frame);
  if (frame.type === "tool_line") return showLine(entries, frame);
  if (frame.type === "resync") return startOver();
  if (frame.seq <= seq) return;
  seq = root.dataset.seq = frame.seq;
  const placed = frame.html ? applyPieces(frame.html) : [];
  refreshDetails(frame.type);
  if (frame.refetch) startOver();
  if (frame.type === "turn") turned(frame.data, placed);
  else if (frame.type === "generation") generated(frame.data);
  else if (frame.type === "health") showLevel();
  else if (frame.type === "contextBreakingUpdate") showBreaking(frame.data);
  else if (frame.type === "context:pruned")
    toast(tr("Context pruned: {number} items removed", { number: frame.data.removed }));
  else if (frame.type === "remediation" && frame.data.undone)
    toast(tr("Undone: what was removed is seen again."), "success", "", "undo");
  else if (frame.type === "notice" && !frame.data.for_programs) told(frame.data.text);
  else if (frame.type === "state") showState(frame.data.state);
}

/** Announce a new state. An event may report the same state again, because of another change that it carries. */
function showState(now) {
  if (now === state) return;
  state = now;
  if (now === "generating") announce(tr("Generating"));
  else if (now === "failed") announce(tr("The message was not answered"));
}

function told(text) {
  endBreaking();
  showNotice(text);
}

function showNotice(text) {
  document.getElementById("notice").textContent = text;
  if (text) announce(text);
}

function turned(turn, placed) {
  if (turn.role !== "tool") showNotice("");
  if (turn.generation) liveText.finish(turn.generation, false);
  if (placed.some((piece) => piece.isNew && piece.id === `turn-${turn.seq}`) && turn.role !== "tool")
    follower.arrived(1);
  if (turn.role === "assistant" && turn.text && ["complete", "stopped"].includes(turn.status)) {
    const number = turn.text.trim().split(/\s+/).length;
    announce(
      turn.status === "stopped"
        ? tr("Answer stopped, {number} words", { number })
        : tr("Answer complete, {number} words", { number }),
    );
  }
}

function generated(generation) {
  if (generation.outcome !== "running")
    liveText.finish(generation.id, ["kept", "stopped"].includes(generation.outcome));
  else if (generation.purpose === "forced_clear") {
    announce(tr("Attempt {number} of 3: asking the agent to clear its mind", { number: generation.attempt }));
  }
}

/** Tell screen readers of the context's fullness when its level changes, not at each new number. */
function showLevel() {
  const { level: now, words } = document.getElementById("ring").dataset;
  if (now !== level) announce(tr("Context {level}: {words}", { level: LEVELS[now], words }));
  level = now;
}

function showConnection(state) {
  const place = document.getElementById("connection");
  place.dataset.state = state;
  place.querySelector(".words").textContent = CONNECTION_WORDS[state];
  document.getElementById("reconnect").hidden = !["reconnecting", "offline"].includes(state);
}

/** Reload the page, since its cursor belongs to another generation of the database; but not over and over. */
function startOver() {
  const last = Number(sessionStorage.getItem("dominds:resync") ?? 0);
  if (Date.now() - last < 10_000) return;
  sessionStorage.setItem("dominds:resync", String(Date.now()));
  location.reload();
}

document.getElementById("reconnect").addEventListener("click", () => connection.retryNow());
document.addEventListener("dominds:sent", () => {
  foldTools(entries);
  follower.follow();
});
document.addEventListener("dominds:placed", (event) => {
  const heading = event.detail.find((piece) => piece.id === "heading");
  if (heading)
    document.title = document.title.replace(
      /^(\(\d+\) )?.*( · Dominds)$/,
      (_, count, end) => `${count ?? ""}${textOf(heading)}${end}`,
    );
  event.detail.forEach(decorate);
  if (follower.following) trim();
});

// An image in an answer is fetched only when its name is clicked, since its address could carry out what was read.
document.addEventListener("click", (event) => {
  const link = event.target.closest(".md a.image");
  const turn = link?.closest(".turn[id]:not(.live)");
  if (!turn || !("images" in root.dataset) || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const address = encodeURIComponent(link.getAttribute("href"));
  const image = Object.assign(new Image(), {
    alt: link.textContent,
    className: "remote",
    src: `/d/${root.dataset.dialog}/turn/${turn.id.slice("turn-".length)}/remote-image/?address=${address}`,
  });
  link.replaceWith(image); // its size on the page is fixed, so nothing moves when it arrives
  image.addEventListener("error", () => {
    image.replaceWith(link);
    toast(tr("The image was not loaded. Open its link in a new tab to see it there."), "error");
  });
});

// Older messages are loaded as the reader scrolls up, and removed again once they are far above.
const older = new IntersectionObserver(
  (seen) => seen.some((entry) => entry.isIntersecting) && window.htmx?.trigger("#older", "older"),
  { root: transcript, rootMargin: "600px 0px 0px 0px" },
);
const watchOlder = () => {
  const link = document.getElementById("older");
  if (link) older.observe(link);
};
let anchor = null;
entries.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.elt.id !== "older") return;
  const first = entries.querySelector("[data-position]");
  anchor = { first, top: first.getBoundingClientRect().top };
});
entries.addEventListener("htmx:afterSettle", () => {
  if (!anchor) return;
  if (!follower.following) transcript.scrollTop += anchor.first.getBoundingClientRect().top - anchor.top;
  anchor = null;
  localTimes(entries);
  decorateNew();
  watchOlder();
});

// A link to a place of the conversation scrolls there, if the place is on this page, and the place is marked.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href*='#']");
  const address = link && new URL(link.href, location.href);
  if (!address || address.pathname !== location.pathname || !address.hash || event.ctrlKey || event.metaKey) return;
  if (!goTo(address.hash)) return;
  event.preventDefault();
});

/** Scroll to a place in an entry and mark it. Return false if it is on another page. */
function goTo(hash) {
  const place = document.getElementById(hash.slice(1));
  const entry = place?.closest("[data-position]");
  if (!entry) return false;
  openBoxes(entries, entry);
  unfold(entry);
  follower.following = false;
  if (location.hash === hash) history.replaceState(null, "", location.pathname + location.search);
  location.hash = hash; // this is what :target follows
  place.scrollIntoView({ block: "center" });
  follower.scrolled();
  return true;
}

function decorateNew() {
  for (const turn of entries.querySelectorAll(".turn:not([data-decorated])")) {
    turn.dataset.decorated = "";
    if (!turn.querySelector(".code .copy")) decorate(turn);
  }
  foldTools(entries);
}

function trim() {
  const turns = entries.querySelectorAll("[data-position]");
  if (turns.length < KEPT_ENTRIES + 60) return;
  openBoxes(entries);
  const first = turns[turns.length - KEPT_ENTRIES];
  for (const turn of [...turns].slice(0, turns.length - KEPT_ENTRIES)) turn.remove();
  document.getElementById("older")?.remove();
  const link = document.createElement("a");
  const before = Math.ceil(Number(first.dataset.position));
  Object.assign(link, {
    id: "older",
    className: "older",
    href: `/d/${root.dataset.dialog}/?before=${before}`,
    textContent: tr("Load older messages"),
  });
  link.setAttribute("hx-get", `/d/${root.dataset.dialog}/older?before=${before}`);
  link.setAttribute("hx-trigger", "click, older");
  link.setAttribute("hx-swap", "outerHTML");
  entries.prepend(link);
  window.htmx?.process(link);
  watchOlder();
}

/** Start from the page as the server rendered it, up to event `seq`. The socket brings the events that follow. */
function begin() {
  liveText = newLiveText();
  seq = Number(root.dataset.seq);
  state = document.getElementById("state").dataset.state;
  level = document.getElementById("ring").dataset.level;
  decorateNew();
}

function listen() {
  const isNewest = root.dataset.newest === "yes";
  document.getElementById("connection").hidden = !isNewest;
  if (!isNewest) return showConnection("offline");
  connection.open();
  requestAnimationFrame(() => requestAnimationFrame(watchOlder));
}

begin();
const composer = startComposer(root.dataset.dialog);
startPickers();
startOffscreen(transcript, entries);
startAsked(transcript);
startCode();
startTurns();
startSide();
startVersions({
  root,
  scroller: transcript,
  entries,
  leave() {
    connection.close();
    follower.following = false;
    showNotice("");
  },
  arrive() {
    begin();
    composer.turnTo(root.dataset.dialog);
    listen();
  },
});
if (!goTo(location.hash) && root.dataset.newest === "yes") follower.follow();
listen();
