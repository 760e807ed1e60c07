import { connect } from "node:net";

const receiveBytes = 65_536;
const nul = 0;

/** The frame that opens a connection, with RabbitMQ's default user. */
const connectFrame = toFrame("CONNECT", {
  "accept-version": "1.2",
  host: "/",
  login: "guest",
  passcode: "guest",
  "heart-beat": "0,0",
});

/** The bytes of a frame. @param {string} command @param {Record<string, string | number>} headers @param {string} body */
export function toFrame(command, headers, body = "") {
  const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  return Buffer.from(`${command}\n${lines.join("")}\n${body}\0`);
}

/**
 * A bare socket that speaks STOMP 1.2. It reads only the first letter of each frame and finds its end: a full parser would take processor time from the
 * server on the same machine. No body contains a NUL, so each NUL ends a frame.
 */
export class FrameSocket {
  #socket;
  #onFrame;
  /** First letter of the frame whose end has not come yet; empty between frames. */
  #letter = "";
  #isConnected = false;

  /** @param {(letter: string) => void} onFrame gets the first letter of the frame's command */
  constructor(onFrame) {
    this.#onFrame = onFrame;
  }

  /** Connects, and calls back when the server has accepted the connection. */
  open(port, { onConnected, onEnded }) {
    const onread = {
      buffer: Buffer.allocUnsafe(receiveBytes),
      callback: (count, buffer) => {
        this.#receive(buffer.subarray(0, count), onConnected);
        return true;
      },
    };
    this.#socket = connect({ host: "127.0.0.1", port, noDelay: true, onread });
    this.#socket.once("connect", () => this.#socket.write(connectFrame));
    this.#socket.once("error", onEnded);
    this.#socket.once("close", onEnded);
  }

  write(bytes) {
    this.#socket.write(bytes);
  }

  end() {
    this.#socket.end();
  }

  #receive(bytes, onConnected) {
    let from = 0;
    for (let end = bytes.indexOf(nul); end !== -1; end = bytes.indexOf(nul, from)) {
      const letter = this.#letter === "" ? firstLetter(bytes, from) : this.#letter;
      this.#letter = "";
      from = end + 1;
      if (this.#isConnected) this.#onFrame(letter);
      else this.#accept(letter, onConnected);
    }
    if (this.#letter === "") this.#letter = firstLetter(bytes, from);
  }

  #accept(letter, onConnected) {
    if (letter !== "C") throw new Error("the server refused the connection");
    this.#isConnected = true;
    onConnected();
  }
}

/** The first letter of the frame at `from`, after any line ends between frames; empty if no frame has begun. */
function firstLetter(bytes, from) {
  const lineEnd = 10;
  let at = from;
  while (bytes[at] === lineEnd) at += 1;
  return at < bytes.length ? String.fromCharCode(bytes[at]) : "";
}
