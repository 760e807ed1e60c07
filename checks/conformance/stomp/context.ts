import { expect } from "vitest";
import type { Frame, Version } from "./frames.ts";
import { type Addresses, Peer, type PeerOptions } from "./peer.ts";

export interface ContextOptions extends PeerOptions {
  readonly addresses: Addresses;
  /** Begins every name of the run. */
  readonly name: string;
}

/** What one run of a case uses. */
export class Context {
  readonly version: Version;
  /** A topic of this run alone; others stand below it. */
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

  /** Whether each byte is a write. */
  get isSlow(): boolean {
    return this.#options.cut === "bytes";
  }

  /** A connection without CONNECT. */
  async open(version = this.version): Promise<Peer> {
    const peer = await Peer.open(this.#options.addresses, { ...this.#options, version });
    this.#peers.push(peer);
    return peer;
  }

  /** Headers of a CONNECT of this version. */
  get hello(): Readonly<Record<string, string>> {
    return this.version === "1.0" ? {} : { "accept-version": this.version, host: "localhost" };
  }

  async connect(headers: Readonly<Record<string, string>> = {}): Promise<Peer> {
    const peer = await this.open();
    peer.send("CONNECT", { ...this.hello, ...headers });
    await peer.next("CONNECTED");
    return peer;
  }

  /** A connection of STOMP 1.0, which has no escapes: its headers are what others mean by theirs. */
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

  /** Subscribes, and answers the `id`. */
  async subscribe(peer: Peer, headers: Readonly<Record<string, string>> = {}): Promise<string> {
    const id = this.newId();
    await peer.ask("SUBSCRIBE", { id, destination: this.topic, ...headers });
    return id;
  }

  /** A connection with a subscription. */
  async subscribed(headers: Readonly<Record<string, string>> = {}): Promise<Peer> {
    const peer = await this.connect();
    await this.subscribe(peer, headers);
    return peer;
  }

  /** Publishes from a connection of its own, and answers the eventId. */
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

  /** The next events of a peer, as texts. */
  async take(peer: Peer, count: number): Promise<readonly string[]> {
    const texts: string[] = [];
    for (let left = count; left > 0; left -= 1) texts.push((await peer.next("MESSAGE")).body.toString());
    return texts;
  }

  /** ACK or NACK of a MESSAGE, as the version has it. */
  settle(peer: Peer, command: "ACK" | "NACK", { message, ...headers }: { message: Frame; transaction?: string }): void {
    peer.send(command, { ...this.settling(message), ...headers });
  }

  settling({ headers }: Pick<Frame, "headers">): Record<string, string> {
    if (this.version === "1.2") return { id: headers["ack"] ?? "" };
    const messageId = { "message-id": headers["message-id"] ?? "" };
    return this.version === "1.0" ? messageId : { ...messageId, subscription: headers["subscription"] ?? "" };
  }

  /** A connection that the broker ends with an ERROR after these bytes. */
  async refuses(send: (peer: Peer) => void): Promise<Frame> {
    const peer = await this.connect();
    send(peer);
    return peer.isRefused();
  }

  close(): void {
    for (const peer of this.#peers) peer.drop();
    this.#peers = [];
  }
}

/** The texts of these events come again to a new connection of a durable subscription: nobody acknowledged them. */
export async function expectLeft(context: Context, id: string, texts: readonly string[]): Promise<void> {
  const peer = await context.connect();
  await context.subscribe(peer, { ack: "client", "svc-subscriptionId": id });
  expect(await context.take(peer, texts.length)).toEqual(texts);
  await context.publish("the end");
  expect(await context.take(peer, 1)).toEqual(["the end"]);
}
