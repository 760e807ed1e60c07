import { expect } from "vitest";
import type { Random } from "../../../harness/random.ts";
import { until } from "../../../harness/until.ts";
import { operatedTopic, Orders, type Send, sequenceOf, sideTopic } from "./orders.ts";
import { createSubjects, type Subject } from "./subjects.ts";

/** Timeout of a wait, in milliseconds: ten times as long as such a wait takes while other tests run. */
const doneMs = 240_000;
/** Number of concurrent publishes. While orders keep the broker busy, several of them share a transaction. */
const publishesAtOnce = 4;

/** Subscriptions that get every kind of operator order while publishers publish and brokers die. */
export class Operated implements AsyncDisposable {
  readonly #orders: Orders;
  readonly #subjects: readonly Subject[];
  /** Identifiers of acknowledged events. */
  readonly #eventIds: string[];
  #isStopped = false;
  #running: Promise<unknown> = Promise.resolve();

  private constructor(orders: Orders, rest: { readonly subjects: readonly Subject[]; readonly eventIds: string[] }) {
    this.#orders = orders;
    this.#subjects = rest.subjects;
    this.#eventIds = rest.eventIds;
  }

  /** `send` sends a request to a broker, which may have died. */
  static async create(send: Send, random: Random): Promise<Operated> {
    const orders = new Orders(send, random);
    const eventIds: string[] = [];
    const subjects = await createSubjects(orders, { eventIds, startedAt: Date.now() });
    return new Operated(orders, { subjects, eventIds });
  }

  /** Number of acknowledged publishes. */
  get published(): number {
    return this.#eventIds.length;
  }

  async subscribe(): Promise<void> {
    for (const topic of [operatedTopic, sideTopic]) await this.#orders.post("/rest/open", { topic });
    for (const subject of this.#subjects) await subject.subscribe();
  }

  /** Publishes, and gives each subscription one order after the other, until {@link stop}. */
  start(): void {
    this.#isStopped = false;
    this.#running = Promise.all([this.#publish(), ...this.#subjects.map((subject) => this.#operate(subject))]);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Address of the node that delivers a random one of the subscriptions. */
  async findDeliverer(): Promise<string | undefined> {
    const { id } = this.#orders.random.pick(this.#subjects);
    return (await this.#orders.get<{ node?: string }>(`/admin/v1/subscriptions/${id}`)).node;
  }

  /** Waits until every order has been carried out at least once. */
  async untilAllGiven(): Promise<void> {
    const { carriedOut } = this.#orders;
    for (const name of this.#subjects.flatMap(({ orderNames }) => orderNames)) {
      await until(`"${name}" was carried out`, () => carriedOut.has(name), { timeoutMs: doneMs });
    }
  }

  /** Waits until no event waits, publishes once more, and checks what each receiver got. */
  async check(): Promise<void> {
    await this.#untilDone();
    const published = await this.#orders.publish(operatedTopic, "last");
    await this.#untilDone();
    const eventIds = await this.#orders.listEvents();
    expect(eventIds.at(-1)).toBe(published);
    expect(eventIds.map(sequenceOf)).toEqual(eventIds.map((_, index) => index + 1));
    for (const subject of this.#subjects) {
      expect(subject.arrived).toContain(eventIds.length);
      subject.check(eventIds);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    for (const subject of this.#subjects) await subject[Symbol.asyncDispose]();
  }

  async #untilDone(): Promise<void> {
    for (const subject of this.#subjects) {
      const isDone = async (): Promise<boolean> => (await subject.end()) && (await subject.findLag()) === 0;
      await until(`no event of the subscription "${subject.constructor.name}" waits`, isDone, { timeoutMs: doneMs });
    }
  }

  async #publish(): Promise<void> {
    const publish = async (): Promise<void> => {
      const eventId = await this.#orders.publish(operatedTopic, "x");
      if (eventId !== undefined) this.#eventIds.push(eventId);
    };
    while (!this.#isStopped) {
      const several = Array.from({ length: publishesAtOnce }, publish);
      await Promise.all([...several, this.#orders.publish(sideTopic, "beside")]);
    }
  }

  async #operate(subject: Subject): Promise<void> {
    while (!this.#isStopped) await subject.next();
  }
}
