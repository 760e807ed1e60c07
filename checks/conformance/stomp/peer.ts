import { once } from "node:events";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { expect } from "vitest";
import { createWebSocketStream, WebSocket } from "ws";
import { type Frame, FrameReader, type HeaderList, toBytes, type Version } from "./frames.ts";

/** The broker's addresses, by transport. */
export interface Addresses {
  /** Port of STOMP over TCP. */
  readonly tcp: number;
  /** 127.0.0.1 if left out. */
  readonly host?: string;
  /** Address of STOMP over WebSocket. */
  readonly websocket: string;
}

export type Transport = "tcp" | "websocket";

/** What a client sends in one write: a frame, or a byte. */
export type Cut = "frames" | "bytes";

export interface PeerOptions {
  readonly transport: Transport;
  readonly version: Version;
  readonly cut: Cut;
}

const subprotocols = { "1.0": "v10.stomp", "1.1": "v11.stomp", "1.2": "v12.stomp" } as const;

/** The client's end of one connection, with a reader that refuses everything that the specification does not allow. */
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

  /** Sends a frame, and returns its RECEIPT. */
  async ask(
    command: string,
    headers: Readonly<Record<string, string>> = {},
    body: string | Buffer = "",
  ): Promise<Frame> {
    const receipt = this.newReceipt();
    this.send(command, { ...headers, receipt }, body);
    return this.receipt(receipt);
  }

  /** Reads the next RECEIPT, which must have this id. MESSAGEs that come before it are left for later. */
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

  /** Sends the text in one write, even if the client writes byte by byte. */
  sendPiece(text: string): void {
    this.#stream.write(text);
  }

  newReceipt(): string {
    this.#lastReceipt += 1;
    return `r-${this.#lastReceipt}`;
  }

  /** Closes the connection without DISCONNECT. */
  drop(): void {
    this.#stream.destroy();
  }

  /** Returns the next frame; undefined once the broker has closed. */
  async any(): Promise<Frame | undefined> {
    while (this.#received.length === 0 && !this.#isClosed && this.#problem === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#problem !== undefined) throw this.#problem;
    return this.#received.shift();
  }

  /** Returns the next frame. Checks that it has this command. */
  async next(command: string): Promise<Frame> {
    const frame = await this.any();
    expect(frame?.command, `${JSON.stringify(frame?.headers)} ${String(frame?.body)}`).toBe(command);
    return frame as Frame; // compared above
  }

  /** Checks that the broker closes without another frame. */
  async expectClosed(): Promise<void> {
    const frame = await this.any();
    expect(frame).toBeUndefined();
    expect(this.reader.isInside).toBe(false);
  }

  /** Checks that the broker sends an ERROR with a message, and closes. A unit test of the broker checks that it closes at once. */
  async expectRefused(): Promise<Frame> {
    const error = await this.next("ERROR");
    expect(error.headers["message"]).toMatch(/./);
    await this.expectClosed();
    return error;
  }

  /** Checks that no frame comes before the answers to a transaction that does nothing. */
  async expectQuiet(): Promise<void> {
    const transaction = this.newReceipt();
    await this.ask("BEGIN", { transaction });
    await this.ask("ABORT", { transaction });
    expect(this.#received).toEqual([]); // MESSAGEs that came before
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
