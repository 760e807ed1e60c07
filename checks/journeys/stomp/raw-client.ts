import { Context } from "../../conformance/stomp/context.ts";
import type { Version } from "../../conformance/stomp/frames.ts";
import type { Peer } from "../../conformance/stomp/peer.ts";
import type { Headers, Message, StompClient } from "./journey.ts";

/** A client that uses no library: it sends frames over a TCP socket. */
export class RawClient implements StompClient {
  readonly #context: Context;
  #peer: Peer | undefined;

  constructor(port: number, version: Version) {
    const addresses = { tcp: port, websocket: "" };
    this.#context = new Context({ addresses, transport: "tcp", version, cut: "frames", name: "" });
  }

  async connect(): Promise<void> {
    this.#peer = await this.#context.connect();
  }

  async subscribe(destination: string, headers: Headers): Promise<Headers> {
    return (await this.#connected.ask("SUBSCRIBE", { destination, ...headers })).headers;
  }

  async send(destination: string, { headers, body }: Message): Promise<Headers> {
    return (await this.#connected.ask("SEND", { destination, ...headers }, body)).headers;
  }

  async next(): Promise<Message> {
    const { headers, body } = await this.#connected.next("MESSAGE");
    return { headers, body: body.toString() };
  }

  async unsubscribe({ id }: { readonly id: string }): Promise<void> {
    await this.#connected.ask("UNSUBSCRIBE", { id });
  }

  ack({ headers }: Message): void {
    this.#connected.send("ACK", this.#context.ackHeaders({ headers }));
  }

  nack({ headers }: Message): void {
    this.#connected.send("NACK", this.#context.ackHeaders({ headers }));
  }

  begin(transaction: string): void {
    this.#connected.send("BEGIN", { transaction });
  }

  commit(transaction: string): void {
    this.#connected.send("COMMIT", { transaction });
  }

  abort(transaction: string): void {
    this.#connected.send("ABORT", { transaction });
  }

  async disconnect(): Promise<void> {
    await this.#connected.ask("DISCONNECT");
    this.#context.close();
  }

  get #connected(): Peer {
    if (this.#peer === undefined) throw new Error("not connected");
    return this.#peer;
  }
}
