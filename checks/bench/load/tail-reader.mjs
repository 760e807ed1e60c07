import { connect } from "node:net";

/** Occurs once in each event, and never in the frame that opens a stream. */
const mark = Buffer.from("\ndata: ");

/** Reads a tail over a bare socket and counts events. It has two of MqttClient's callbacks, `onDeliveries` and `onFailed`. */
export class TailReader {
  onDeliveries = () => {};
  onFailed = () => {};
  #socket;
  /** The last received bytes, in which a mark may begin. */
  #rest = Buffer.alloc(0);
  #isEnded = false;

  /** Resolves when the stream has begun. */
  open({ port, topic }) {
    this.#socket = connect({ host: "127.0.0.1", port, noDelay: true });
    this.#socket.once("connect", () => {
      this.#socket.write(`GET /tail?topic=${encodeURIComponent(topic)} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    });
    return new Promise((resolve, reject) => {
      const fail = () => {
        if (this.#isEnded) return;
        this.#isEnded = true;
        reject(new Error("The server closed a tail connection."));
        this.onFailed();
      };
      this.#socket.on("error", fail);
      this.#socket.on("close", fail);
      let head = "";
      const begin = (chunk) => {
        head += chunk.toString("latin1");
        if (!head.includes("\nid: ")) return;
        this.#socket.off("data", begin);
        this.#socket.on("data", (more) => this.#receive(more));
        resolve(this);
      };
      this.#socket.on("data", begin);
    });
  }

  end() {
    this.#isEnded = true;
    this.#socket.destroy();
  }

  #receive(chunk) {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let events = 0;
    let from = 0;
    for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, from)) {
      events += 1;
      from = at + mark.length;
    }
    this.#rest = bytes.subarray(Math.max(from, bytes.length - mark.length + 1));
    if (events > 0) this.onDeliveries(events);
  }
}
