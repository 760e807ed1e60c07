import { createHmac } from "node:crypto";
import { expect } from "vitest";
import { type Attempt, accept, type Receiver, startReceiver } from "../../../harness/receiver.ts";
import { operatedTopic, type Orders, sequenceOf } from "./orders.ts";

/** What subjects know of the load. */
export interface Load {
  /** Identifiers of acknowledged events. */
  readonly eventIds: readonly string[];
  /** When publishing began, in milliseconds since the epoch. */
  readonly startedAt: number;
}

/** A subscription that is given operator orders, and the check of what its receiver got. */
export abstract class Subject implements AsyncDisposable {
  protected readonly orders: Orders;
  protected readonly load: Load;
  protected readonly receiver: Receiver;
  /** Every `what` of an order that it is given. */
  abstract readonly orderNames: readonly string[];
  #id = "";
  #turn = 0;

  constructor(parts: { readonly orders: Orders; readonly load: Load; readonly receiver: Receiver }) {
    ({ orders: this.orders, load: this.load, receiver: this.receiver } = parts);
  }

  get id(): string {
    return this.#id;
  }

  /** The orders, one a turn. `next` takes turns over and over. */
  abstract readonly turns: readonly (() => Promise<unknown>)[];
  protected abstract readonly parameters: object;
  /** Every event of the topic, in order. */
  abstract check(eventIds: readonly string[]): void;

  /** Ends pauses, so that no event stays waiting. Returns whether it succeeded. */
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

  /** Number of matching events that wait. */
  async findLag(): Promise<number> {
    return (await this.orders.get<{ lag: number }>(`/admin/v1/subscriptions/${this.id}`)).lag;
  }

  /** Sequences of the operated topic's events in order of arrival. A ping has none. */
  get arrived(): readonly number[] {
    const own = this.load.eventIds[0]?.split("-")[0];
    return this.receiver.attempts.map(idOf).flatMap((id) => (id.split("-")[0] === own ? [sequenceOf(id)] : []));
  }

  /** Checks that no event arrived before all earlier ones. Repeats may go back, but no event is passed over. */
  protected expectNothingPassed(eventIds: readonly string[]): void {
    let newest = 0;
    for (const sequence of this.arrived) {
      expect(sequence).toBeLessThanOrEqual(newest + 1);
      newest = Math.max(newest, sequence);
    }
    expect(newest).toBe(eventIds.length);
  }
}

/** Is paused, resumed, retried, tested, and replayed from each kind of place. */
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
   * A random acknowledged event up to the one that arrived last, since a replay only goes back. A random choice of all would mostly lie ahead, because
   * the broker publishes faster than it redelivers.
   */
  #pickPast(): string {
    const newest = this.arrived.at(-1) ?? 0;
    const past = this.load.eventIds.filter((id) => sequenceOf(id) <= newest);
    return past.length === 0 ? "OFFSET_FIRST" : this.orders.random.pick(past);
  }

  /** A random time up to about when the event that arrived last was published, as if events were published at an even pace. */
  #pickTime(): string {
    const { startedAt, eventIds } = this.load;
    const share = Math.min(1, (this.arrived.at(-1) ?? 0) / Math.max(1, eventIds.length));
    const elapsedMs = Math.floor((Date.now() - startedAt) * share);
    return new Date(startedAt + this.orders.random.below(elapsedMs + 1)).toISOString();
  }
}

/** Skips one event, or all events up to one of the next few after the newest that arrived. */
export class Skipped extends Subject {
  readonly orderNames = ["skip one", "skip to sequence", "skip to eventId"];
  protected readonly parameters = {};
  /** Sequences that an order may have skipped. Those up to the newest arrived event were already delivered or skipped. */
  readonly #permitted = new Set<number>();
  #single = 0;
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
    expect(missing.length).toBeLessThanOrEqual(this.#single);
    const first = [...new Set(this.arrived)];
    expect(first).toEqual(first.toSorted((a, b) => a - b));
  }

  /** An order without an answer may have been carried out. */
  async #skipOne(): Promise<void> {
    const answer = await this.give("skip", undefined, "skip one");
    if (answer === undefined) this.#single += 1;
    else if (answer.status === 200) this.#single += Math.min(1, (answer.json() as { events: number }).events); // Documented in OpenAPI.
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

/** Changes url, secret, format and filter. Each request is signed with a secret that its url had. */
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

/** Makes dead letters of events that its receiver refuses, redelivers them, and discards some. */
export class Letters extends Subject {
  readonly orderNames = ["redeliver all", "redeliver one", "discard one"];
  protected readonly parameters = { onFailure: "skip", attemptsMax: 2 };
  /** Events that an order may have discarded. */
  readonly #discarded = new Set<string>();
  #isMended = false;
  readonly turns = [
    () => this.give("redeliver", { all: true }, "redeliver all"),
    () => this.#ofOne("redeliver"),
    () => this.pauseAndResume(),
    () => this.#ofOne("discard"),
    () => this.give("retry"),
  ];

  override async subscribe(): Promise<void> {
    this.receiver.setBehaviour((attempt, response) => {
      const isRefused = !this.#isMended && sequenceOf(idOf(attempt)) % 3 === 0 && this.orders.random.fraction() < 0.7;
      if (isRefused) response.writeHead(500).end();
      else accept(attempt, response);
    });
    await super.subscribe();
  }

  /** Also redelivers every dead letter. */
  override async end(): Promise<boolean> {
    this.#isMended = true;
    if (!(await super.end()) || (await this.findLag()) > 0) return false;
    const answer = await this.give("redeliver", { all: true }, "redeliver all");
    return answer?.status === 200 && (answer.json() as { letters: { left: number } }).letters.left === 0; // Documented in OpenAPI.
  }

  check(eventIds: readonly string[]): void {
    const accepted = new Set(this.receiver.accepted().map(({ eventId }) => eventId));
    expect(eventIds.filter((id) => !accepted.has(id) && !this.#discarded.has(id))).toEqual([]);
  }

  async #ofOne(name: "redeliver" | "discard"): Promise<void> {
    const path = `/admin/v1/subscriptions/${this.id}/dead-letters?limit=20`;
    const page = await this.orders.get<{ items: readonly { eventId: string }[] }>(path).catch(() => undefined);
    if (page?.items === undefined || page.items.length === 0) return;
    const { eventId } = this.orders.random.pick(page.items);
    if (name === "discard") this.#discarded.add(eventId);
    await this.give(name, { eventId }, `${name} one`);
  }
}

const kinds = [Moved, Skipped, Changed, Letters];

/** One subject of each kind, subscribed to nothing yet. */
export async function createSubjects(orders: Orders, load: Load): Promise<readonly Subject[]> {
  return Promise.all(kinds.map(async (kind) => new kind({ orders, load, receiver: await startReceiver() })));
}

/** The eventId of a callback. A CloudEvent has it in `id`. */
function idOf({ event, body }: Attempt): string {
  // The type of the harness has no CloudEvents.
  const given = event as Attempt["event"] | undefined;
  return given?.eventId ?? (JSON.parse(body.toString()) as { id: string }).id;
}

function sign(secret: string, { headers, body }: Attempt): string {
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const text = `${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body.toString()}`;
  return `v1,${createHmac("sha256", key).update(text).digest("base64")}`;
}
