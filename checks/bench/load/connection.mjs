import { connect } from "node:net";

const receiveBytes = 65_536;
const success = '"status":"SUCCESS"';

/**
 * One keep-alive HTTP/1.1 connection that repeats its list of requests. It sends each when the answer to the previous one has arrived. It implements as
 * little of HTTP as it can: a full parser would take processor time from the server on the same machine.
 */
export class Connection {
  #socket;
  #requests;
  #turn;
  #eventsPerRequest;
  #pauseMs;
  #onAnswer;
  #received = "";
  #sentAt = 0;
  #isOpen = true;

  /**
   * @param {{ readonly requests: readonly Buffer[], readonly first?: number, readonly eventsPerRequest: number, readonly pauseMs?: number }} options `first` is the index of the first request, `pauseMs` the time between an answer and the next request
   * @param {(latencyMs: number, isSuccess: boolean, isOpen: boolean) => boolean} onAnswer whether to send again
   */
  constructor({ requests, first = 0, eventsPerRequest, pauseMs = 0 }, onAnswer) {
    this.#requests = requests;
    this.#turn = first;
    this.#eventsPerRequest = eventsPerRequest;
    this.#pauseMs = pauseMs;
    this.#onAnswer = onAnswer;
  }

  /** Connects and sends the first request. */
  open(port) {
    const onread = {
      buffer: Buffer.allocUnsafe(receiveBytes),
      callback: (count, buffer) => {
        this.#receive(buffer.latin1Slice(0, count));
        return true;
      },
    };
    this.#socket = connect({ host: "127.0.0.1", port, noDelay: true, onread });
    this.#socket.once("connect", () => this.#send());
    this.#socket.once("error", () => this.#fail());
    this.#socket.once("close", () => this.#fail());
  }

  #send() {
    this.#sentAt = performance.now();
    this.#socket.write(this.#requests[this.#turn % this.#requests.length]);
    this.#turn += 1;
  }

  #receive(text) {
    this.#received = this.#received === "" ? text : this.#received + text;
    const length = answerLength(this.#received);
    if (length === undefined || this.#received.length < length) return;
    const isSuccess = this.#received.startsWith("HTTP/1.1 200") && this.#countSuccesses() === this.#eventsPerRequest;
    this.#received = "";
    if (this.#onAnswer(performance.now() - this.#sentAt, isSuccess, true)) this.#sendNext();
    else this.#close();
  }

  #sendNext() {
    if (this.#pauseMs === 0) this.#send();
    else setTimeout(() => this.#send(), this.#pauseMs);
  }

  #countSuccesses() {
    let count = 0;
    for (let at = this.#received.indexOf(success); at !== -1; at = this.#received.indexOf(success, at + 1)) count += 1;
    return count;
  }

  #close() {
    this.#isOpen = false;
    this.#socket.end();
  }

  #fail() {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#onAnswer(performance.now() - this.#sentAt, false, false);
  }
}

/** Length of the whole answer in bytes; undefined while its head is incomplete. */
function answerLength(text) {
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd === -1) return undefined;
  const field = text.indexOf("ontent-length: ");
  const fieldLower = field === -1 ? text.indexOf("ontent-Length: ") : field;
  if (fieldLower === -1 || fieldLower > headEnd) throw new Error(`An answer without Content-Length: ${text}`);
  return headEnd + 4 + Number.parseInt(text.slice(fieldLower + 15, headEnd), 10);
}
