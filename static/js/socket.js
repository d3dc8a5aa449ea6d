// A socket that reconnects, and polling while it cannot. The server sends missed events again.

const HANDSHAKE_MS = 10_000;
const SILENT_MS = 60_000; // the server speaks at least every 25 s
const LONGEST_WAIT_MS = 15_000;
const POLL_MS = 2_000;
const FAILURES_BEFORE_POLLING = 3;
const GONE = [4401, 4404];

export class Connection {
  /** `path()` returns the socket's address with its cursor. `pollPath()`, if given, is polled, and answers {frames}. */
  constructor({ path, pollPath, onFrame, onState }) {
    Object.assign(this, { path, pollPath, onFrame, onState });
    this.failures = 0;
    this.socket = null;
    this.timers = {};
    // A socket that seems open may have been lost with the network, without a close.
    addEventListener("online", () => (this.isOpen ? this.restart() : this.retryNow()));
    addEventListener("offline", () => this.onState("offline"));
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && !this.isOpen) this.retryNow();
    });
    addEventListener("pagehide", () => this.socket?.close(1000));
    addEventListener("pageshow", (event) => event.persisted && this.retryNow());
  }

  get isOpen() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  open() {
    clearTimeout(this.timers.wait);
    const origin = location.origin.replace(/^http/, "ws");
    const socket = (this.socket = new WebSocket(origin + this.path()));
    let opened = false;
    this.watch(HANDSHAKE_MS);
    socket.onopen = () => {
      opened = true;
      this.failures = 0;
      this.stopPolling();
      socket.send('{"type":"ack","n":0}');
      this.onState("live");
    };
    socket.onmessage = (message) => {
      this.watch(SILENT_MS);
      const frame = JSON.parse(message.data);
      if (frame.type === "ping") socket.send(JSON.stringify({ type: "ack", n: frame.n }));
      else this.onFrame(frame);
    };
    socket.onclose = (event) => {
      if (socket !== this.socket) return;
      clearTimeout(this.timers.watch);
      if (GONE.includes(event.code)) location.reload();
      else this.comeBack(opened);
    };
  }

  /** Restart the socket if nothing comes for so long, since some proxies drop idle sockets without a close. */
  watch(milliseconds) {
    clearTimeout(this.timers.watch);
    this.timers.watch = setTimeout(() => this.restart(), milliseconds);
  }

  /** Close the socket, and do not reconnect until `open` is called. */
  close() {
    const old = this.socket;
    this.socket = null;
    this.failures = 0;
    Object.values(this.timers).forEach(clearTimeout);
    this.stopPolling();
    old?.close(1000);
  }

  restart() {
    const old = this.socket;
    this.socket = null;
    old?.close();
    this.comeBack(true);
  }

  retryNow() {
    if (this.isOpen || this.socket?.readyState === WebSocket.CONNECTING) return;
    this.open();
  }

  comeBack(wasOpen) {
    this.failures += 1;
    if (!wasOpen && this.failures === 1) this.ask(); // perhaps this person may no longer see the dialog
    if (this.failures >= FAILURES_BEFORE_POLLING && this.pollPath) this.startPolling();
    else this.onState(navigator.onLine ? "reconnecting" : "offline");
    const longest = Math.min(LONGEST_WAIT_MS, 500 * 2 ** this.failures);
    this.timers.wait = setTimeout(() => this.open(), 250 + Math.random() * longest);
  }

  startPolling() {
    if (this.timers.poll) return;
    Object.assign(this, { isAsking: false, pause: 0, askAfter: 0 });
    this.timers.poll = setInterval(() => this.askIfDue(), POLL_MS);
    this.askIfDue();
  }

  /** Poll, one request at a time. If the server fails, poll less often, since all its pages poll when sockets fail. */
  async askIfDue() {
    if (this.isAsking || Date.now() < this.askAfter) return;
    this.isAsking = true;
    const hasAnswered = await this.ask();
    if (hasAnswered && this.pause) this.retryNow(); // the server was away, and is back: sockets may work
    this.pause = hasAnswered ? 0 : Math.min(2 * Math.max(this.pause, POLL_MS), LONGEST_WAIT_MS);
    this.askAfter = Date.now() + this.pause * (0.5 + Math.random() / 2);
    this.isAsking = false;
  }

  stopPolling() {
    clearInterval(this.timers.poll);
    this.timers.poll = null;
  }

  async ask() {
    if (!this.pollPath) return false;
    const path = this.pollPath();
    try {
      const answer = await fetch(path, { headers: { Accept: "application/json" } });
      if (answer.redirected || answer.status === 404) {
        location.reload();
        return false;
      }
      if (!answer.ok) throw new Error(answer.statusText);
      const { frames } = await answer.json();
      if (!this.isOpen && path === this.pollPath()) frames.forEach((frame) => this.onFrame(frame));
      if (this.timers.poll && !this.pause) this.onState("polling");
      return true;
    } catch {
      if (!this.isOpen) this.onState(navigator.onLine ? "reconnecting" : "offline");
      return false;
    }
  }
}
