import { FrameSocket, toFrame } from "./stomp-frames.mjs";

/** One connection that sends the same SEND again as soon as it has the RECEIPT for the previous one. */
export class StompConnection {
  #socket = new FrameSocket((letter) => this.#answer(letter === "R"));
  #send;
  #onAnswer;
  #sentAt = 0;
  #isOpen = true;

  /**
   * @param {{ readonly destination: string, readonly content: string }} options
   * @param {(latencyMs: number, isSuccess: boolean) => boolean} onAnswer whether to send again
   */
  constructor({ destination, content }, onAnswer) {
    // RabbitMQ stores a message on disk only if `persistent` asks for it.
    const headers = { destination, persistent: "true", receipt: "sent", "content-length": content.length };
    this.#send = toFrame("SEND", headers, content);
    this.#onAnswer = onAnswer;
  }

  /** Connects and publishes the first message. */
  open(port) {
    this.#socket.open(port, { onConnected: () => this.#publish(), onEnded: () => this.#fail() });
  }

  #publish() {
    this.#sentAt = performance.now();
    this.#socket.write(this.#send);
  }

  #answer(isSuccess) {
    if (!this.#isOpen) return;
    if (this.#onAnswer(performance.now() - this.#sentAt, isSuccess)) {
      this.#publish();
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
