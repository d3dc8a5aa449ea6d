// The answer while it is being written: finished blocks as the server's HTML, and the open end after them.
import { Tail } from "./tail.js";
import { tr } from "./words.js";

const NEWEST_CHARS = 400; // characters of the reasoning that are searched for its newest sentence
const SHORT_CHARS = 12; // shorter beginnings of a sentence would only flicker
const SENTENCE_END = /\n+|(?<=[.!?])\s+|(?<=[。！？])/;

export class LiveText {
  /** `lost` is called if a frame was missed, so that the server sends the text again from its beginning. */
  constructor(entries, who, lost) {
    Object.assign(this, { entries, who, lost });
    this.generation = 0;
    this.ended = 0;
    this.node = null;
  }

  show(frame) {
    if (frame.generation <= this.ended || frame.generation < this.generation) return;
    if (frame.generation > this.generation || !this.node) {
      if (!frame.reset && frame.pos > 0) return this.lost();
      this.begin(frame.generation);
    }
    if (frame.reset) return this.startFrom(frame);
    if (frame.pos > this.end || (frame.reasoning_pos ?? 0) > this.thoughtEnd || (frame.block ?? 0) > this.blocks + 1)
      return this.lost();
    if (frame.reasoning && frame.reasoning_pos === this.thoughtEnd) this.think(frame);
    if (frame.pos === this.end && frame.text) {
      this.fold();
      this.tail.append(frame.text);
      this.end = frame.end;
    }
    if (frame.block === this.blocks + 1) {
      this.body.insertAdjacentHTML("beforeend", frame.html);
      this.setTail(frame.tail);
      this.blocks = frame.block;
    }
  }

  begin(generation) {
    this.remove();
    this.generation = generation;
    this.node = document.createElement("article");
    this.node.id = "live";
    this.node.className = "turn turn-assistant live";
    this.node.innerHTML =
      '<header><h3 class="who"></h3></header>' +
      '<details class="reasoning" hidden><summary><span></span> <span class="muted"></span> <span class="muted" aria-hidden="true"></span></summary><div class="plain" tabindex="0"></div></details>' +
      '<div class="body md" hx-disable></div><div class="body tail md" hx-disable></div>';
    this.node.querySelector(".who").textContent = this.who;
    [this.body, this.tailBox] = this.node.querySelectorAll(".body");
    this.setTail("");
    this.reasoning = this.node.querySelector(".reasoning");
    [this.thinks, this.since, this.newest] = this.reasoning.querySelectorAll("span");
    this.thinks.textContent = tr("Reasoning…");
    this.thought = this.reasoning.lastChild.appendChild(document.createTextNode(""));
    this.reasoning.addEventListener("toggle", () => {
      this.reasoning.lastChild.scrollTop = this.reasoning.lastChild.scrollHeight;
    });
    this.end = this.blocks = this.thoughtEnd = 0;
    this.isFolded = false;
    this.entries.querySelector("#latest").before(this.node);
  }

  startFrom(frame) {
    this.body.innerHTML = frame.html;
    this.setTail(frame.tail);
    this.end = frame.end;
    this.blocks = frame.block ?? 0;
    this.thought.data = "";
    this.thoughtEnd = 0;
    if (frame.reasoning) this.think(frame);
    if (frame.text) this.fold();
  }

  /**
   * Add to the reasoning. One line shows its newest sentence, so that nothing moves when the answer begins. A click
   * opens all of it. The server tells how long ago the reasoning began, since frames may come late.
   */
  think({ reasoning: text, reasoning_seconds: seconds = 0 }) {
    const box = this.reasoning.lastChild;
    const atEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 30;
    const began = new Date(Date.now() - seconds * 1000).toISOString();
    if (!(this.since.dataset.since < began)) this.since.dataset.since = began; // the frame that came soonest knows best
    this.thought.appendData(text);
    this.thoughtEnd += [...text].length; // the server counts characters, not UTF-16 units
    const sentences = this.thought.data.slice(-NEWEST_CHARS).trimEnd().split(SENTENCE_END);
    this.newest.textContent = sentences.findLast((sentence, at) => sentence.length >= SHORT_CHARS || !at);
    this.reasoning.hidden = false;
    if (this.reasoning.open && atEnd) box.scrollTop = box.scrollHeight;
  }

  fold() {
    if (this.isFolded) return;
    this.isFolded = true;
    this.thinks.textContent = tr("Reasoning");
    this.since.remove();
    this.newest.remove();
  }

  /** Begin a new tail with this text, in a new box, after a block before it was finished. */
  setTail(text) {
    const box = this.tailBox.cloneNode(false);
    this.tail = new Tail(box);
    this.tailBox.replaceWith(box);
    this.tailBox = box;
    if (text.trim()) this.tail.append(text.replace(/^\n+/, ""));
  }

  /** End a generation. With `keepsText` its turn is about to replace the text; otherwise the text goes at once. */
  finish(generation, keepsText) {
    this.ended = Math.max(this.ended, generation);
    if (this.generation !== generation || !this.node) return;
    const kept = this.entries.querySelector(`.turn-assistant[data-generation="${generation}"] .reasoning`);
    if (kept && this.reasoning.open) kept.open = true;
    if (keepsText) setTimeout(() => this.generation === generation && this.remove(), 600);
    else this.remove();
  }

  remove() {
    this.node?.remove();
    this.node = null;
  }
}
