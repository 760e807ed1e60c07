import { type EventBody, formatEventId, topicDigest, type TopicState } from "@stele/wire";
import type { TopicName } from "../domain/topic-name.ts";
import { type BrokerClient, unread } from "./broker-client.ts";
import type { ChainBatch } from "./chain-batches.ts";
import { Unverifiable } from "./unverifiable.ts";

/** A batch on the chain that is malformed, or breaks the rules by which every broker reads. It gives no events, but uses up sequence numbers. */
export interface MalformedBatch {
  readonly firstSequence: number;
  readonly count: number;
  readonly blockNumber: number;
  readonly fault: string;
}

/** One difference between chain and broker. `foreign` means that the publisher is not an expected one. */
export interface Difference {
  readonly kind: "missing" | "different" | "extra" | "foreign";
  readonly sequence: number;
  readonly eventId: string;
  /** For `different`: the field that differs. */
  readonly field: keyof EventBody | undefined;
  /** For `foreign`: the publishing account. */
  readonly publisher?: string;
}

interface ComparedRange {
  readonly topic: TopicName;
  readonly from: number;
  readonly to: number;
  /** Accounts that may have published; undefined for anyone. */
  readonly publishers: readonly string[] | undefined;
  /** A block that the broker has read. */
  readonly readUpTo: number;
}

interface EventPlace {
  readonly sequence: number;
  readonly blockNumber: number;
}

interface Unread extends Difference {
  readonly blockNumber: number;
  /** How many events the broker has not read, from this one on. */
  readonly count: number;
}

/** Maximum number of differences that a report names, and of malformed batches; it only counts the others. */
const namedMax = 20;
/** Number of concurrent event requests to the broker. */
const eventsUnderWayMax = 16;

/** Asks the broker for the events on the chain, and keeps the differences. */
export class Comparison {
  readonly counts: Record<Difference["kind"], number> = { missing: 0, different: 0, extra: 0, foreign: 0 };
  readonly differences: Difference[] = [];
  readonly malformed: MalformedBatch[] = [];
  batches = 0;
  events = 0;
  malformedBatches = 0;
  readonly #broker: BrokerClient;
  readonly #range: ComparedRange;
  readonly #digest: string;
  /** The first of the events that the broker says it has not read. */
  #unread: Unread | undefined;

  constructor(broker: BrokerClient, range: ComparedRange) {
    this.#broker = broker;
    this.#range = range;
    this.#digest = topicDigest(range.topic);
  }

  get total(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0);
  }

  async take(batch: ChainBatch): Promise<void> {
    const { from, to } = this.#range;
    const { firstSequence, count, blockNumber, events, fault } = batch;
    const first = Math.max(from, firstSequence);
    const last = Math.min(to, firstSequence + count - 1);
    if (first > last) return;
    this.batches += 1;
    if (events === undefined || (fault !== undefined && (await this.#isLeftOut(first, blockNumber)))) {
      this.malformedBatches += 1;
      if (this.malformed.length < namedMax) {
        this.malformed.push({ firstSequence, count, blockNumber, fault: fault ?? "" });
      }
      // Checks only the first and the last: a stranger's batch may claim four billion events.
      for (const sequence of new Set([first, last])) await this.#expectNone(sequence, blockNumber);
      return;
    }
    this.#checkPublisher(batch, { first, last });
    for (let sequence = first; sequence <= last; sequence += eventsUnderWayMax) {
      const some = events.slice(
        sequence - firstSequence,
        Math.min(last + 1, sequence + eventsUnderWayMax) - firstSequence,
      );
      const expected = some.map((event, index) => this.#toBody(event, { sequence: sequence + index, blockNumber }));
      const given = await Promise.all(expected.map(({ eventId }) => this.#broker.findEvent(eventId)));
      for (const [index, body] of expected.entries())
        this.#compare(body, given[index], { sequence: sequence + index, blockNumber });
      this.events += some.length;
    }
  }

  /** @throws Unverifiable if broker and chain differ only in events that the broker has not read. */
  expectAllRead(): void {
    if (this.total > 0 || this.#unread === undefined) return;
    const { sequence, blockNumber } = this.#unread;
    const advice =
      sequence > this.#range.from ? `; ask again later, or pass --to ${sequence - 1}` : "; ask again later";
    throw new Unverifiable(`the broker has not read block ${blockNumber} with sequence ${sequence} yet${advice}`);
  }

  /** Notes events of the broker after the topic's last one on the chain. @throws Unverifiable if the node, at block `head`, lags behind the broker. */
  finish(
    { sequenceNumber, blockNumber }: TopicState,
    { onChain, head }: { readonly onChain: number; readonly head: number },
  ): void {
    if (sequenceNumber <= onChain) return;
    if (blockNumber > head)
      throw new Unverifiable(`the node is at block ${head}, but the broker is at ${blockNumber} or later`);
    this.#note({ kind: "extra", sequence: onChain + 1, eventId: "", field: undefined }, sequenceNumber - onChain);
  }

  #checkPublisher({ publisher, blockNumber }: ChainBatch, { first, last }: { first: number; last: number }): void {
    if (this.#range.publishers?.includes(publisher) !== false) return;
    const eventId = formatEventId({ topicDigest: this.#digest, sequence: first, blockNumber });
    this.#note({ kind: "foreign", sequence: first, eventId, field: undefined, publisher }, last - first + 1);
  }

  async #expectNone(sequence: number, blockNumber: number): Promise<void> {
    if (await this.#isLeftOut(sequence, blockNumber)) return;
    this.#note({ kind: "extra", sequence, eventId: this.#idOf(sequence, blockNumber), field: undefined });
  }

  async #isLeftOut(sequence: number, blockNumber: number): Promise<boolean> {
    return typeof (await this.#broker.findEvent(this.#idOf(sequence, blockNumber))) !== "object";
  }

  #idOf(sequence: number, blockNumber: number): string {
    return formatEventId({ topicDigest: this.#digest, sequence, blockNumber });
  }

  #toBody(
    event: NonNullable<ChainBatch["events"]>[number],
    place: { sequence: number; blockNumber: number },
  ): EventBody {
    return {
      topic: this.#range.topic,
      content: Buffer.from(event.content).toString("base64"),
      extensions: Object.fromEntries(event.extensions),
      eventId: formatEventId({ topicDigest: this.#digest, ...place }),
    };
  }

  #compare(expected: EventBody, given: Awaited<ReturnType<BrokerClient["findEvent"]>>, place: EventPlace): void {
    const { eventId } = expected;
    const { sequence, blockNumber } = place;
    const missing = { kind: "missing", sequence, eventId, field: undefined } as const;
    if (given === undefined) return this.#note(missing);
    if (given === unread) {
      if (blockNumber <= this.#range.readUpTo) return this.#note(missing);
      this.#unread = { ...(this.#unread ?? { ...missing, blockNumber }), count: (this.#unread?.count ?? 0) + 1 };
      return;
    }
    this.#refuteUnread();
    const fields = ["topic", "content", "extensions", "eventId"] as const;
    const field = fields.find((name) => JSON.stringify(expected[name]) !== JSON.stringify(given[name]));
    if (field !== undefined) this.#note({ kind: "different", sequence, eventId, field });
  }

  /** Notes the unread events as missing: the broker has a later event, so it has read the blocks of the events that it called unread. */
  #refuteUnread(): void {
    if (this.#unread === undefined) return;
    const { count, blockNumber: _, ...missing } = this.#unread;
    this.#unread = undefined;
    this.#note(missing, count);
  }

  #note(difference: Difference, count = 1): void {
    this.counts[difference.kind] += count;
    if (this.differences.length < namedMax) this.differences.push(difference);
  }
}
