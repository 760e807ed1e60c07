import { expect } from "vitest";
import type { Frame, Version } from "./frames.ts";
import { type Addresses, Peer, type PeerOptions } from "./peer.ts";

export interface ContextOptions extends PeerOptions {
  readonly addresses: Addresses;
  /** Prefix of every name that the run uses, so that all runs can share one broker. */
  readonly name: string;
}

/** Connections and names of one run of a case. */
export class Context {
  readonly version: Version;
  /** A topic that only this run uses, also with levels below it. */
  readonly topic: string;
  readonly #options: ContextOptions;
  #peers: Peer[] = [];
  #publisher: Peer | undefined;
  #lastId = 0;

  constructor(options: ContextOptions) {
    this.#options = options;
    this.version = options.version;
    this.topic = options.name;
  }

  get addresses(): Addresses {
    return this.#options.addresses;
  }

  /** Whether clients write byte by byte. */
  get isSlow(): boolean {
    return this.#options.cut === "bytes";
  }

  /** Opens a connection without CONNECT. */
  async open(version = this.version): Promise<Peer> {
    const peer = await Peer.open(this.#options.addresses, { ...this.#options, version });
    this.#peers.push(peer);
    return peer;
  }

  /** Headers of a CONNECT of this version. */
  get hello(): Readonly<Record<string, string>> {
    return this.version === "1.0" ? {} : { "accept-version": this.version, host: "localhost" };
  }

  /** Opens a connection, and waits for CONNECTED. */
  async connect(headers: Readonly<Record<string, string>> = {}): Promise<Peer> {
    const peer = await this.open();
    peer.send("CONNECT", { ...this.hello, ...headers });
    await peer.next("CONNECTED");
    return peer;
  }

  /** Opens a connection of STOMP 1.0, which has no escapes. */
  async connectPlainly(): Promise<Peer> {
    const peer = await this.open("1.0");
    peer.send("CONNECT");
    await peer.next("CONNECTED");
    return peer;
  }

  newId(): string {
    this.#lastId += 1;
    return String(this.#lastId);
  }

  /** Subscribes, and returns the `id`. */
  async subscribe(peer: Peer, headers: Readonly<Record<string, string>> = {}): Promise<string> {
    const id = this.newId();
    await peer.ask("SUBSCRIBE", { id, destination: this.topic, ...headers });
    return id;
  }

  /** Opens a connection with a subscription. */
  async subscribed(headers: Readonly<Record<string, string>> = {}): Promise<Peer> {
    const peer = await this.connect();
    await this.subscribe(peer, headers);
    return peer;
  }

  /** Publishes from a separate connection, and returns the eventId. */
  async publish(body: string | Buffer, headers: Readonly<Record<string, string>> = {}): Promise<string> {
    this.#publisher ??= await this.connect();
    const sized = { "content-length": String(Buffer.byteLength(body)) };
    const { headers: answer } = await this.#publisher.ask(
      "SEND",
      { destination: this.topic, ...sized, ...headers },
      body,
    );
    return answer["eventId"] ?? "";
  }

  /** Returns the bodies of the next MESSAGEs of a peer. */
  async take(peer: Peer, count: number): Promise<readonly string[]> {
    const texts: string[] = [];
    for (let left = count; left > 0; left -= 1) texts.push((await peer.next("MESSAGE")).body.toString());
    return texts;
  }

  /** Sends an ACK or NACK of a MESSAGE, with the headers of the version. */
  settle(peer: Peer, command: "ACK" | "NACK", { message, ...headers }: { message: Frame; transaction?: string }): void {
    peer.send(command, { ...this.ackHeaders(message), ...headers });
  }

  /** The headers by which an ACK or NACK names a MESSAGE. */
  ackHeaders({ headers }: Pick<Frame, "headers">): Record<string, string> {
    if (this.version === "1.2") return { id: headers["ack"] ?? "" };
    const messageId = { "message-id": headers["message-id"] ?? "" };
    return this.version === "1.0" ? messageId : { ...messageId, subscription: headers["subscription"] ?? "" };
  }

  /** Opens a connection and calls `send`. Returns the ERROR frame with which the broker then ends the connection. */
  async expectError(send: (peer: Peer) => void): Promise<Frame> {
    const peer = await this.connect();
    send(peer);
    return peer.expectRefused();
  }

  close(): void {
    for (const peer of this.#peers) peer.drop();
    this.#peers = [];
  }
}

/** Checks that a new connection to a durable subscription gets exactly these texts again, because nobody acknowledged them. */
export async function expectLeft(context: Context, id: string, texts: readonly string[]): Promise<void> {
  const peer = await context.connect();
  await context.subscribe(peer, { ack: "client", "svc-subscriptionId": id });
  expect(await context.take(peer, texts.length)).toEqual(texts);
  await context.publish("the end");
  expect(await context.take(peer, 1)).toEqual(["the end"]);
}
