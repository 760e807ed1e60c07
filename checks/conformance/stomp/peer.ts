import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { expect } from "vitest";
import { createWebSocketStream, WebSocket } from "ws";
import { type Frame, FrameReader, type HeaderList, toBytes, type Version } from "./frames.ts";

/** Where the broker is, by transport. */
export interface Addresses {
  /** Port of STOMP over TCP. */
  readonly tcp: number;
  /** 127.0.0.1 if left out. */
  readonly host?: string;
  /** Address of STOMP over WebSocket. */
  readonly websocket: string;
}

export type Transport = "tcp" | "websocket";

/** How a client cuts what it sends: a frame at a time, or each byte for itself. */
export type Cut = "frames" | "bytes";

export interface PeerOptions {
  readonly transport: Transport;
  readonly version: Version;
  readonly cut: Cut;
}

const subprotocols = { "1.0": "v10.stomp", "1.1": "v11.stomp", "1.2": "v12.stomp" } as const;

/** The client's end of one connection, with a reader of its own that takes nothing that the specification does not allow. */
export class Peer {
  readonly version: Version;
  readonly reader: FrameReader;
  readonly #stream: Duplex;
  readonly #cut: Cut;
  readonly #received: Frame[] = [];
  #wake: (() => void) | undefined;
  #isClosed = false;
  #problem: Error | undefined;
  #lastReceipt = 0;

  constructor(stream: Duplex, { version, cut }: PeerOptions) {
    this.version = version;
    this.reader = new FrameReader(version);
    this.#stream = stream;
    this.#cut = cut;
    stream.on("data", (chunk: Buffer) => this.#receive(chunk));
    stream.on("error", () => {});
    const closed = (): void => {
      this.#isClosed = true;
      this.#wake?.();
    };
    stream.once("end", closed);
    stream.once("close", closed);
  }

  static async open(addresses: Addresses, options: PeerOptions): Promise<Peer> {
    if (options.transport === "tcp") {
      const socket = connect({ port: addresses.tcp, host: addresses.host ?? "127.0.0.1", noDelay: true });
      await once(socket, "connect");
      return new Peer(socket, options);
    }
    const webSocket = new WebSocket(addresses.websocket, subprotocols[options.version]);
    await once(webSocket, "open");
    expect(webSocket.protocol).toBe(subprotocols[options.version]);
    return new Peer(createWebSocketStream(webSocket), options);
  }

  send(command: string, headers: HeaderList = {}, body: string | Buffer = ""): void {
    this.sendBytes(toBytes({ command, headers, body }, this.version));
  }

  /** Sends a frame, and reads its RECEIPT. */
  async ask(
    command: string,
    headers: Readonly<Record<string, string>> = {},
    body: string | Buffer = "",
  ): Promise<Frame> {
    const receipt = this.newReceipt();
    this.send(command, { ...headers, receipt }, body);
    return this.receipt(receipt);
  }

  /** Reads the next RECEIPT, which must be this one. MESSAGEs that come before it are left for later. */
  async receipt(id: string): Promise<Frame> {
    const before: Frame[] = [];
    let answer = await this.any();
    for (; answer?.command === "MESSAGE"; answer = await this.any()) before.push(answer);
    this.#received.unshift(...before);
    expect(answer?.command, `${JSON.stringify(answer?.headers)} ${String(answer?.body)}`).toBe("RECEIPT");
    expect(answer?.headers["receipt-id"]).toBe(id);
    return answer as Frame; // compared above
  }

  sendBytes(bytes: string | Uint8Array): void {
    const all = Buffer.from(bytes);
    if (this.#cut === "frames") this.#stream.write(all);
    else for (let at = 0; at < all.length; at += 1) this.#stream.write(all.subarray(at, at + 1));
  }

  /** In one write, however the client cuts its frames. */
  sendPiece(text: string): void {
    this.#stream.write(text);
  }

  newReceipt(): string {
    this.#lastReceipt += 1;
    return `r-${this.#lastReceipt}`;
  }

  /** Ends the connection without a word. */
  drop(): void {
    this.#stream.destroy();
  }

  /** The next frame; undefined once the broker has closed. */
  async any(): Promise<Frame | undefined> {
    while (this.#received.length === 0 && !this.#isClosed && this.#problem === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#problem !== undefined) throw this.#problem;
    return this.#received.shift();
  }

  async next(command: string): Promise<Frame> {
    const frame = await this.any();
    expect(frame?.command, `${JSON.stringify(frame?.headers)} ${String(frame?.body)}`).toBe(command);
    return frame as Frame; // compared above
  }

  /** The broker closes without another frame. */
  async closes(): Promise<void> {
    const frame = await this.any();
    expect(frame).toBeUndefined();
    expect(this.reader.isInside).toBe(false);
  }

  /** The broker sends an ERROR with a short message, and closes: at once by its own clock, says a test beside its source. */
  async isRefused(): Promise<Frame> {
    const error = await this.next("ERROR");
    expect(error.headers["message"]).toMatch(/./);
    await this.closes();
    return error;
  }

  /** Nothing comes before the answer to a transaction that does nothing. */
  async isQuiet(): Promise<void> {
    const transaction = this.newReceipt();
    await this.ask("BEGIN", { transaction });
    await this.ask("ABORT", { transaction });
  }

  #receive(chunk: Buffer): void {
    try {
      this.#received.push(...this.reader.push(chunk));
    } catch (error) {
      this.#problem = error instanceof Error ? error : new Error(String(error));
    }
    this.#wake?.();
  }
}
