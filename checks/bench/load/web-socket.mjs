import { EventEmitter } from "node:events";
import { connect } from "node:net";

const binaryFrame = 0x82;
const closeFrame = 0x88;
const key = Buffer.alloc(16).toString("base64");

/** A minimal WebSocket client for MQTT over a bare socket: it masks with zeros, and does not validate the server's frames. */
export class WebSocketConnection extends EventEmitter {
  #socket;
  #rest = Buffer.alloc(0);
  #isOpen = false;

  constructor({ port, path = "/mqtt" }) {
    super();
    this.#socket = connect({ host: "127.0.0.1", port, noDelay: true });
    const head = [`GET ${path} HTTP/1.1`, "host: localhost", "upgrade: websocket", "connection: Upgrade"];
    const own = [`sec-websocket-key: ${key}`, "sec-websocket-version: 13", "sec-websocket-protocol: mqtt"];
    this.#socket.once("connect", () => this.#socket.write(`${[...head, ...own].join("\r\n")}\r\n\r\n`));
    this.#socket.on("data", (chunk) => this.#receive(chunk));
    this.#socket.on("error", (error) => this.emit("error", error));
    this.#socket.on("close", () => this.emit("close"));
  }

  write(bytes) {
    const { length } = bytes;
    const size = length < 126 ? [length | 0x80] : [126 | 0x80, length >> 8, length & 0xff];
    this.#socket.write(Buffer.concat([Buffer.from([binaryFrame, ...size, 0, 0, 0, 0]), bytes]));
  }

  destroy() {
    this.#socket.destroy();
  }

  #receive(chunk) {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (!this.#isOpen) {
      const end = bytes.indexOf("\r\n\r\n");
      if (end !== -1) {
        if (!bytes.toString("latin1", 0, 12).endsWith("101")) throw new Error(bytes.toString("latin1", 0, end));
        this.#isOpen = true;
        bytes = bytes.subarray(end + 4);
        this.emit("connect");
      }
    }
    this.#rest = this.#isOpen ? this.#takeFrames(bytes) : bytes;
  }

  /** Emits all complete payloads at once; returns the bytes of the incomplete frame. */
  #takeFrames(bytes) {
    const payloads = [];
    let at = 0;
    while (at + 2 <= bytes.length) {
      if (bytes[at] === closeFrame) throw new Error("The server closed a WebSocket.");
      const short = bytes[at + 1] & 0x7f;
      const start = at + (short === 126 ? 4 : 2);
      if (short === 127) throw new Error("The server sent a frame of 64 KiB or more.");
      if (start > bytes.length) break;
      const end = start + (short === 126 ? bytes.readUInt16BE(at + 2) : short);
      if (end > bytes.length) break;
      payloads.push(bytes.subarray(start, end));
      at = end;
    }
    if (payloads.length > 0) this.emit("data", payloads.length === 1 ? payloads[0] : Buffer.concat(payloads));
    return bytes.subarray(at);
  }
}
