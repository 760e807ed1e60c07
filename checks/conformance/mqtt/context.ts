import type { ISubscription, Packet } from "mqtt-packet";
import { expect } from "vitest";
import { type Addresses, Peer, type Transport } from "./peer.ts";

export interface ContextOptions {
  readonly addresses: Addresses;
  readonly transport: Transport;
  readonly version: 4 | 5;
  /** Prefix of every name that the run uses, so that all runs can share one broker. */
  readonly name: string;
}

type Publish = Extract<Packet, { cmd: "publish" }>;

/** Connections and names of one run of a case. */
export class Context {
  readonly version: 4 | 5;
  /** A topic that only this run uses, also with levels below it. */
  readonly topic: string;
  readonly #options: ContextOptions;
  #peers: Peer[] = [];
  #lastId = 0;

  constructor(options: ContextOptions) {
    this.#options = options;
    this.version = options.version;
    this.topic = options.name;
  }

  get addresses(): Addresses {
    return this.#options.addresses;
  }

  clientId(name: string): string {
    return `${this.#options.name}-${name}`;
  }

  /** Opens a connection without CONNECT. */
  async open(): Promise<Peer> {
    const peer = await Peer.open(this.#options.addresses, this.#options);
    this.#peers.push(peer);
    return peer;
  }

  /** Opens a connection, and checks that its CONNACK is a success. */
  async connect(name = "client", fields: object = {}): Promise<Peer> {
    const peer = await this.open();
    const connack = await this.sendConnect(peer, name, fields);
    expect(connack.reasonCode ?? connack.returnCode).toBe(0);
    return peer;
  }

  /** Sends a CONNECT, and returns the CONNACK. */
  async sendConnect(peer: Peer, name: string, fields: object = {}): Promise<Extract<Packet, { cmd: "connack" }>> {
    peer.send({ cmd: "connect", clientId: this.clientId(name), clean: true, keepalive: 0, ...fields });
    return peer.next("connack");
  }

  /** Fields of a CONNECT whose session outlasts the connection. */
  get storedSession(): object {
    return this.version === 5 ? { clean: false, properties: { sessionExpiryInterval: 100 } } : { clean: false };
  }

  /** Subscribes with QoS 2, unless `options` has another QoS, and checks the SUBACK. */
  async subscribe(peer: Peer, filter: string, options: Partial<ISubscription> = {}): Promise<void> {
    const messageId = this.newId();
    const subscription = { topic: filter, qos: 2, ...options };
    peer.send({ cmd: "subscribe", messageId, subscriptions: [subscription] });
    expect(await peer.next("suback")).toMatchObject({ messageId, granted: [subscription.qos] });
  }

  /** Publishes with QoS 1, from a new connection unless one is given, and checks the PUBACK. */
  async publish(payload: string, fields: object = {}, peer?: Peer): Promise<void> {
    const from = peer ?? (await this.connect(`publisher-${this.newId()}`));
    const messageId = this.newId();
    from.send({ cmd: "publish", topic: this.topic, payload, qos: 1, messageId, ...fields });
    const answer = await from.next("puback");
    expect(answer.messageId).toBe(messageId);
    expect(answer.reasonCode ?? 0).toBe(0);
  }

  /** Returns the next events of a peer, and acknowledges each as its QoS requires. */
  async receive(peer: Peer, count: number): Promise<readonly Publish[]> {
    const found: Publish[] = [];
    const received = new Set<number | undefined>();
    while (found.length < count || received.size > 0) {
      const packet = await peer.any();
      if (packet?.cmd === "pubrel" && received.delete(packet.messageId)) {
        peer.send({ cmd: "pubcomp", messageId: packet.messageId });
        continue;
      }
      expect(packet?.cmd, JSON.stringify(packet)).toBe("publish");
      const publish = packet as Publish; // compared above
      const { qos, messageId } = publish;
      found.push(publish);
      if (qos === 1) peer.send({ cmd: "puback", messageId });
      if (qos === 2) peer.send({ cmd: "pubrec", messageId });
      if (qos === 2) received.add(messageId);
    }
    return found;
  }

  /** Returns the next event of a peer, and acknowledges it. */
  async take(peer: Peer): Promise<Publish> {
    const [publish] = await this.receive(peer, 1);
    if (publish === undefined) throw new Error("no event was received");
    return publish;
  }

  newId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  close(): void {
    for (const peer of this.#peers) peer.drop();
    this.#peers = [];
  }
}

/** The payloads of events. */
export function textsOf(events: readonly Publish[]): readonly string[] {
  return events.map(({ payload }) => String(payload));
}
