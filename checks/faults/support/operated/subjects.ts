import { createHmac } from "node:crypto";
import { expect } from "vitest";
import { type Attempt, accept, type Receiver, startReceiver } from "../../../harness/receiver.ts";
import { operatedTopic, type Orders, sequenceOf } from "./orders.ts";

/** The part of the load that subjects read. */
export interface Load {
  /** Identifiers of acknowledged events. */
  readonly eventIds: readonly string[];
  /** When publishing began, as Unix time in milliseconds. */
  readonly startedAt: number;
}

/** A subscription that gets operator orders, and a check of its callbacks. */
export abstract class Subject implements AsyncDisposable {
  protected readonly orders: Orders;
  protected readonly load: Load;
  protected readonly receiver: Receiver;
  /** The `what` of each order that a broker must carry out at least once. */
  abstract readonly orderNames: readonly string[];
  #id = "";
  #turn = 0;

  constructor(parts: { readonly orders: Orders; readonly load: Load; readonly receiver: Receiver }) {
    ({ orders: this.orders, load: this.load, receiver: this.receiver } = parts);
  }

  get id(): string {
    return this.#id;
  }

  /** Each turn gives an order or two. `next` takes the turns in a cycle. */
  abstract readonly turns: readonly (() => Promise<unknown>)[];
  protected abstract readonly parameters: object;
  /** Checks the callbacks. `eventIds` are all events of the topic, in order. */
  abstract check(eventIds: readonly string[]): void;

  /** Resumes the subscription, so that no event stays waiting. Returns whether it succeeded. */
  async end(): Promise<boolean> {
    return (await this.give("resume"))?.status === 200;
  }

  async subscribe(): Promise<void> {
    this.#id = await this.orders.subscribe({ url: this.receiver.url, ...this.parameters });
  }

  async next(): Promise<void> {
    await this.turns[this.#turn++ % this.turns.length]?.();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.receiver[Symbol.asyncDispose]();
  }

  protected give(name: string, body?: object, what = name) {
    return this.orders.give(this.id, { name, what, ...(body && { body }) });
  }

  protected async pauseAndResume(): Promise<void> {
    await this.give("pause");
    await this.give("resume");
  }

  /** Number of events that wait for delivery. */
  async findLag(): Promise<number> {
    return (await this.orders.get<{ lag: number }>(`/admin/v1/subscriptions/${this.id}`)).lag;
  }

  /** Sequences of the operated topic's events, in order of arrival. Leaves out events of the side topic, and test callbacks. */
  get arrived(): readonly number[] {
    const own = this.load.eventIds[0]?.split("-")[0];
    return this.receiver.attempts.map(idOf).flatMap((id) => (id.split("-")[0] === own ? [sequenceOf(id)] : []));
  }

  /** Checks that each event arrived, and none before all earlier events had arrived. Allows repeats of earlier events. */
  protected expectNothingPassed(eventIds: readonly string[]): void {
    let newest = 0;
    for (const sequence of this.arrived) {
      expect(sequence).toBeLessThanOrEqual(newest + 1);
      newest = Math.max(newest, sequence);
    }
    expect(newest).toBe(eventIds.length);
  }
}

/** A subscription that gets pauses, retries, test callbacks, and replays from each kind of place. */
export class Moved extends Subject {
  readonly orderNames = ["first", "eventId", "sequence", "time"]
    .map((place) => `replay from ${place}`)
    .concat("pause", "resume", "retry", "test");
  protected readonly parameters = {};
  readonly turns = [
    () => this.give("replay", { from: "OFFSET_FIRST" }, "replay from first"),
    () => this.pauseAndResume(),
    () => this.give("replay", { from: this.#pickPast() }, "replay from eventId"),
    () => this.give("retry"),
    () => this.give("replay", { from: sequenceOf(this.#pickPast()) || 1 }, "replay from sequence"),
    () => this.give("test"),
    () => this.give("replay", { from: this.#pickTime() }, "replay from time"),
  ];

  check(eventIds: readonly string[]): void {
    this.expectNothingPassed(eventIds);
  }

  /**
   * A random acknowledged event that has arrived, since a replay only goes back. Most events have not arrived yet, because the broker publishes faster
   * than it redelivers.
   */
  #pickPast(): string {
    const newest = this.arrived.at(-1) ?? 0;
    const past = this.load.eventIds.filter((id) => sequenceOf(id) <= newest);
    return past.length === 0 ? "OFFSET_FIRST" : this.orders.random.pick(past);
  }

  /** A random time before the last arrived event was published. Estimates that time as if events were published at an even pace. */
  #pickTime(): string {
    const { startedAt, eventIds } = this.load;
    const progress = Math.min(1, (this.arrived.at(-1) ?? 0) / Math.max(1, eventIds.length));
    const elapsedMs = Math.floor((Date.now() - startedAt) * progress);
    return new Date(startedAt + this.orders.random.below(elapsedMs + 1)).toISOString();
  }
}

/** A subscription whose orders skip the next event, or all events up to one of the three after the newest arrived event. */
export class Skipped extends Subject {
  readonly orderNames = ["skip one", "skip to sequence", "skip to eventId"];
  protected readonly parameters = {};
  /** Sequences that a skip to a place may have skipped. Earlier ones had already arrived or been skipped at the time of the order. */
  readonly #permitted = new Set<number>();
  /** Maximum number of events that the orders to skip one event can have skipped. */
  #singleSkips = 0;
  readonly turns = [
    () => this.#skipOne(),
    () => this.#skipTo((sequence) => sequence, "skip to sequence"),
    () => this.give("retry"),
    () => this.#skipTo((sequence) => this.load.eventIds.find((id) => sequenceOf(id) === sequence), "skip to eventId"),
    () => this.pauseAndResume(),
  ];

  check(eventIds: readonly string[]): void {
    const arrived = new Set(this.arrived);
    const missing = eventIds.map(sequenceOf).filter((one) => !arrived.has(one) && !this.#permitted.has(one));
    expect(missing.length).toBeLessThanOrEqual(this.#singleSkips);
    const first = [...new Set(this.arrived)];
    expect(first).toEqual(first.toSorted((a, b) => a - b));
  }

  /** Skips the next event, and counts the skip. Counts an order without an answer too, because a broker may have carried it out. */
  async #skipOne(): Promise<void> {
    const answer = await this.give("skip", undefined, "skip one");
    if (answer === undefined) this.#singleSkips += 1;
    else if (answer.status === 200) this.#singleSkips += Math.min(1, (answer.json() as { events: number }).events); // Documented in OpenAPI.
  }

  async #skipTo(toPlace: (sequence: number) => string | number | undefined, what: string): Promise<void> {
    const newest = Math.max(0, ...this.arrived);
    const sequence = newest + 1 + this.orders.random.below(3);
    const to = toPlace(sequence);
    if (to === undefined) return;
    for (let one = newest + 1; one <= sequence; one += 1) this.#permitted.add(one);
    await this.give("skip", { to }, what);
  }
}

const places = ["/one", "/two"] as const;
const secretsOf = (place: string): readonly string[] =>
  ["first", "second"].map(
    (which) => `whsec_${Buffer.from(`the ${which} secret of ${place}`.padEnd(24)).toString("base64")}`,
  );

/** A subscription whose orders change url, secret, format and filter. Checks that each request is signed with a secret of its url. */
export class Changed extends Subject {
  readonly orderNames = ["change format", "change filter", "change url and secret"];
  protected readonly parameters = { url: this.receiver.url + places[0], secret: secretsOf(places[0])[0] };
  readonly turns = [
    () => this.#change({ kind: "JsonRPC", format: "interface" }, "change format"),
    () => this.#moveTo(places[1]),
    () => this.#change({ topic: `${operatedTopic}/#` }, "change filter"),
    () => this.#change({ kind: "RESTful", format: "cloudevents" }, "change format"),
    () => this.#moveTo(places[0]),
    () => this.#change({ topic: operatedTopic }, "change filter"),
    () => this.#change({ kind: "RESTful", format: "interface" }, "change format"),
  ];

  check(eventIds: readonly string[]): void {
    this.expectNothingPassed(eventIds);
    for (const attempt of this.receiver.attempts) {
      const place = places.find((one) => attempt.path.endsWith(one)) ?? "";
      const expected = secretsOf(place).map((secret) => sign(secret, attempt));
      const signatures = String(attempt.headers["webhook-signature"]).split(" ");
      expect(signatures.some((one) => expected.includes(one))).toBe(true);
    }
    expect(new Set(this.receiver.attempts.map(({ path }) => path)).size).toBe(places.length);
  }

  #change(change: object, what: string) {
    return this.give("change", change, what);
  }

  #moveTo(place: (typeof places)[number]) {
    const secret = this.orders.random.pick(secretsOf(place));
    return this.#change({ url: this.receiver.url + place, secret }, "change url and secret");
  }
}

/** A subscription whose receiver refuses some events, which become dead letters. Orders redeliver or discard these. */
export class Letters extends Subject {
  readonly orderNames = ["redeliver all", "redeliver one", "discard one"];
  protected readonly parameters = { onFailure: "skip", attemptsMax: 2 };
  /** Events that an order may have discarded. */
  readonly #discarded = new Set<string>();
  /** Whether the receiver accepts every event from now on. */
  #isHealed = false;
  readonly turns = [
    () => this.give("redeliver", { all: true }, "redeliver all"),
    () => this.#giveForOne("redeliver"),
    () => this.pauseAndResume(),
    () => this.#giveForOne("discard"),
    () => this.give("retry"),
  ];

  override async subscribe(): Promise<void> {
    this.receiver.setBehaviour((attempt, response) => {
      const isRefused = !this.#isHealed && sequenceOf(idOf(attempt)) % 3 === 0 && this.orders.random.fraction() < 0.7;
      if (isRefused) response.writeHead(500).end();
      else accept(attempt, response);
    });
    await super.subscribe();
  }

  /** Also redelivers every dead letter, which the receiver now accepts. */
  override async end(): Promise<boolean> {
    this.#isHealed = true;
    if (!(await super.end()) || (await this.findLag()) > 0) return false;
    const answer = await this.give("redeliver", { all: true }, "redeliver all");
    return answer?.status === 200 && (answer.json() as { letters: { left: number } }).letters.left === 0; // Documented in OpenAPI.
  }

  check(eventIds: readonly string[]): void {
    const accepted = new Set(this.receiver.accepted().map(({ eventId }) => eventId));
    expect(eventIds.filter((id) => !accepted.has(id) && !this.#discarded.has(id))).toEqual([]);
  }

  async #giveForOne(name: "redeliver" | "discard"): Promise<void> {
    const path = `/admin/v1/subscriptions/${this.id}/dead-letters?limit=20`;
    const page = await this.orders.get<{ items: readonly { eventId: string }[] }>(path).catch(() => undefined);
    if (page?.items === undefined || page.items.length === 0) return;
    const { eventId } = this.orders.random.pick(page.items);
    if (name === "discard") this.#discarded.add(eventId);
    await this.give(name, { eventId }, `${name} one`);
  }
}

const kinds = [Moved, Skipped, Changed, Letters];

/** One subject of each kind, not subscribed yet. */
export async function createSubjects(orders: Orders, load: Load): Promise<readonly Subject[]> {
  return Promise.all(kinds.map(async (kind) => new kind({ orders, load, receiver: await startReceiver() })));
}

/** The eventId of a callback. A CloudEvent has it in `id`. */
function idOf({ event, body }: Attempt): string {
  // The harness's type does not know CloudEvents, which have no member `event`.
  const given = event as Attempt["event"] | undefined;
  return given?.eventId ?? (JSON.parse(body.toString()) as { id: string }).id;
}

function sign(secret: string, { headers, body }: Attempt): string {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const text = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body.toString()}`;
  return `v1,${createHmac("sha256", key).update(text).digest("base64")}`;
}
