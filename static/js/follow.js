// Keeps the end of the conversation in sight while the reader is there, and never pulls them back when they are not.

import { tr } from "./words.js";

const NEAR_PX = 80;
const USER_MS = 900; // a scroll within this time after a gesture is the reader's

export class Follower {
  constructor(scroller, content, jump) {
    Object.assign(this, { scroller, content, jump });
    this.following = true;
    this.unseen = 0;
    this.gestureAt = -Infinity; // 0 would be the page's start: a scroll while it opens is not the reader's
    this.dragging = false;
    const gesture = () => {
      this.gestureAt = performance.now();
    };
    for (const kind of ["wheel", "touchmove", "keydown"]) scroller.addEventListener(kind, gesture, { passive: true });
    scroller.addEventListener("pointerdown", (event) => {
      this.dragging = event.target === scroller;
    });
    addEventListener("pointerup", () => {
      this.dragging = false;
    });
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    content.addEventListener(
      "click",
      (event) => {
        // What a click unfolds must stay where it is.
        if (!event.target.closest("summary, button")) return;
        this.following = false;
        requestAnimationFrame(() => requestAnimationFrame(() => this.scrolled()));
      },
      true,
    );
    new ResizeObserver(() => this.following && this.toEnd()).observe(content);
    new ResizeObserver(() => this.following && this.toEnd()).observe(scroller);
    jump.addEventListener("click", () => this.follow());
  }

  get distance() {
    return this.scroller.scrollHeight - this.scroller.scrollTop - this.scroller.clientHeight;
  }

  scrolled() {
    const byReader = this.dragging || performance.now() - this.gestureAt < USER_MS;
    if (byReader && this.distance > NEAR_PX) this.following = false;
    else if (this.distance <= NEAR_PX) this.following = true;
    if (this.following) this.unseen = 0;
    this.show();
  }

  follow() {
    this.following = true;
    this.unseen = 0;
    this.toEnd();
    this.show();
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  arrived(count) {
    if (!this.following) this.unseen += count;
    this.show();
  }

  show() {
    this.jump.hidden = this.following;
    this.jump.querySelector("span").textContent = this.unseen
      ? tr("Jump to latest ({number} new)", { number: this.unseen })
      : tr("Jump to latest");
  }
}
