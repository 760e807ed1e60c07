import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import { whenClosed } from "../../testing/when-closed.ts";

/** A frame of the broker. Of repeated headers the first counts. */
export interface ServerFrame {
  readonly command: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Headers of a frame, by name. */
export interface FrameFields {
  readonly [header: string]: string;
}

/** A connection that sends any bytes, and reads frames with a parser of its own, without escapes. */
export class RawClient {
  readonly #socket: Socket;
  #unread: Buffer = Buffer.alloc(0);
  readonly frames: ServerFrame[] = [];
  /** Number of line ends received between frames. */
  heartBeats = 0;
  #taken = 0;
  #waiting: Deferred<void> | undefined;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk) => this.#receive(chunk));
    this.closed = whenClosed(socket);
    void this.closed.then(() => this.#waiting?.resolve());
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    await once(socket, "connect");
    return new RawClient(socket);
  }

  /** Uses an open connection. */
  static over(socket: Socket): RawClient {
    return new RawClient(socket);
  }

  /** Opens a connection, and waits for the CONNECTED. */
  static async connect(port: number, version = "1.2", fields: FrameFields = {}): Promise<RawClient> {
    const client = await RawClient.open(port);
    client.send("CONNECT", { "accept-version": version, host: "test", ...fields });
    await client.next("CONNECTED");
    return client;
  }

  send(command: string, headers: FrameFields = {}, body = ""): void {
    const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
    this.write(`${command}\n${lines.join("")}\n${body}\0`);
  }

  write(bytes: string | Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** The next frame; undefined when the connection has closed. */
  async nextAny(): Promise<ServerFrame | undefined> {
    while (this.frames.length <= this.#taken && !this.#socket.destroyed) {
      this.#waiting = createDeferred();
      await this.#waiting.promise;
    }
    const frame = this.frames[this.#taken];
    this.#taken += 1;
    return frame;
  }

  /** The next frame, which must have that command. */
  async next(command: string): Promise<ServerFrame> {
    const frame = await this.nextAny();
    if (frame?.command === command) return frame;
    throw new Error(`${JSON.stringify(frame)} came in place of ${command}`);
  }

  /** Ends its side, but still reads. */
  finish(): void {
    this.#socket.end();
  }

  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Port of its end of the connection. */
  get localPort(): number | undefined {
    return this.#socket.localPort;
  }

  /** Breaks the connection. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk]);
    while (this.#readOne()) this.#waiting?.resolve();
  }

  #readOne(): boolean {
    while (this.#unread[0] === 10) {
      this.heartBeats += 1;
      this.#unread = this.#unread.subarray(1);
    }
    const headEnd = this.#unread.indexOf("\n\n");
    if (headEnd === -1) return false;
    const [command = "", ...lines] = this.#unread.subarray(0, headEnd).toString().split("\n");
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(":");
      headers[line.slice(0, colon)] ??= line.slice(colon + 1);
    }
    const length = headers["content-length"];
    const end = length === undefined ? this.#unread.indexOf(0, headEnd) : headEnd + 2 + Number(length);
    if (end === -1 || this.#unread.length <= end) return false;
    this.frames.push({ command, headers, body: this.#unread.subarray(headEnd + 2, end).toString() });
    this.#unread = this.#unread.subarray(end + 1);
    return true;
  }
}
