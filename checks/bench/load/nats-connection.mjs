import { connect } from "node:net";
import { eventBytes } from "./request.mjs";

/** Subject of the messages to JetStream. */
export const natsSubject = "bench.load";

const lineEnd = "\r\n";

/**
 * One connection to NATS that publishes the same message again as soon as JetStream has acknowledged the previous one. It speaks the text protocol
 * over a bare socket, as {@link Connection} speaks HTTP, so that neither server has a cheaper client.
 */
export class NatsConnection {
  #socket;
  #publish;
  #onAnswer;
  #received = "";
  #sentAt = 0;
  #isOpen = true;

  /** @param {string} content @param {(latencyMs: number, isSuccess: boolean) => boolean} onAnswer whether to send again */
  constructor(content, onAnswer) {
    // JetStream answers to the inbox, and only this connection subscribes to it.
    this.#publish = (inbox) => `PUB ${natsSubject} ${inbox} ${eventBytes}${lineEnd}${content}${lineEnd}`;
    this.#onAnswer = onAnswer;
  }

  /** Connects and publishes the first message. */
  open(port) {
    this.#socket = connect({ host: "127.0.0.1", port, noDelay: true });
    this.#socket.setEncoding("latin1");
    this.#socket.once("connect", () => this.#introduce());
    this.#socket.on("data", (text) => this.#receive(text));
    this.#socket.once("error", () => this.#fail());
    this.#socket.once("close", () => this.#fail());
  }

  #introduce() {
    const inbox = `_INBOX.${process.pid}.${this.#socket.localPort}`;
    this.#publish = this.#publish(inbox);
    this.#socket.write(`CONNECT {"verbose":false,"pedantic":false}${lineEnd}SUB ${inbox} 1${lineEnd}`);
    this.#send();
  }

  #send() {
    this.#sentAt = performance.now();
    this.#socket.write(this.#publish);
  }

  #receive(text) {
    this.#received += text;
    for (let end = this.#received.indexOf(lineEnd); end !== -1 && this.#isOpen; end = this.#received.indexOf(lineEnd)) {
      const line = this.#received.slice(0, end);
      this.#received = this.#received.slice(end + lineEnd.length);
      this.#take(line);
    }
  }

  /** An acknowledgement is JSON without line ends, so one line is enough to recognise it. */
  #take(line) {
    if (line.startsWith("PING")) this.#socket.write(`PONG${lineEnd}`);
    else if (line.startsWith("-ERR")) this.#fail();
    else if (line.startsWith("{")) this.#answer(line.includes('"seq":') && !line.includes('"error"'));
  }

  #answer(isSuccess) {
    if (this.#onAnswer(performance.now() - this.#sentAt, isSuccess)) {
      this.#send();
      return;
    }
    this.#isOpen = false;
    this.#socket.end();
  }

  #fail() {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#onAnswer(performance.now() - this.#sentAt, false);
  }
}
