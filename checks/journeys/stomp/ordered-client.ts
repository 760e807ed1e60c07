import type { Lines } from "../../harness/lines.ts";
import type { Headers, Message, StompClient } from "./journey.ts";

/** Runs a stock client on a test's orders, and reports what the client receives. */
export interface Driver {
  readonly lines: Lines;
  do(order: string, fields?: object): void;
}

interface OrderFields {
  readonly destination: string;
  readonly headers: Headers;
  readonly body?: string;
}

/** A stock client that a driver runs on a test's orders. */
export class OrderedClient implements StompClient {
  readonly #driver: Driver;
  #lastReceipt = 0;

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  async connect(): Promise<void> {
    this.#driver.do("connect");
    await this.#driver.lines.next("connected");
  }

  subscribe(destination: string, headers: Headers): Promise<Headers> {
    return this.#ask("subscribe", { destination, headers });
  }

  send(destination: string, message: Message): Promise<Headers> {
    return this.#ask("send", { destination, ...message });
  }

  async next(): Promise<Message> {
    const { headers, body } = await this.#driver.lines.next("message");
    return { headers: headers as Headers, body: String(body) }; // As every driver reports them.
  }

  async unsubscribe({ id, destination }: { readonly id: string; readonly destination: string }): Promise<void> {
    await this.#ask("unsubscribe", { destination, headers: { id } });
  }

  ack({ headers }: Message): void {
    this.#driver.do("ack", { headers });
  }

  nack({ headers }: Message): void {
    this.#driver.do("nack", { headers });
  }

  begin(transaction: string): void {
    this.#driver.do("begin", { transaction });
  }

  commit(transaction: string): void {
    this.#driver.do("commit", { transaction });
  }

  abort(transaction: string): void {
    this.#driver.do("abort", { transaction });
  }

  async disconnect(): Promise<void> {
    this.#driver.do("disconnect");
    await this.#driver.lines.next("disconnected");
  }

  /** Gives an order, and returns the headers of its RECEIPT. This must be the next RECEIPT: the broker sends them in the same sequence as the frames. */
  async #ask(order: string, fields: OrderFields): Promise<Headers> {
    this.#lastReceipt += 1;
    const receipt = `receipt-${this.#lastReceipt}`;
    this.#driver.do(order, { ...fields, headers: { ...fields.headers, receipt } });
    const headers = (await this.#driver.lines.next("receipt"))["headers"] as Headers; // As every driver reports them.
    if (headers["receipt-id"] !== receipt) throw new Error(`not ${receipt}: ${JSON.stringify(headers)}`);
    return headers;
  }
}
