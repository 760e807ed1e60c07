import fc from "fast-check";
import { expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { Attachment } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";

const who = fc.nat(2);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("publish" as const), count: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("acknowledge" as const), who, which: fc.nat(9) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("attach" as const), who, windowMax: fc.integer({ min: 1, max: 3 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("leave" as const), who }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("die" as const), who, isKept: fc.boolean() }) },
);
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never;

const filter = parseTopicFilter("$share/s/#");

/** A client that may be a member of the share. Its connections come and go. */
class Client {
  readonly #engine: TestEngine;
  readonly #key: string;
  peer = new RecordingPeer();
  attachment: Attachment | undefined;
  /** Unacknowledged events of this connection. */
  readonly held = new Set<string>();
  #seen = 0;

  constructor(engine: TestEngine, key: string) {
    this.#engine = engine;
    this.#key = key;
  }

  async attach(windowMax: number): Promise<void> {
    if (this.attachment !== undefined) return;
    this.peer = new RecordingPeer();
    this.#seen = 0;
    const request = { groupId: undefined, protocol: "MQTT", key: this.#key, isClean: false, will: undefined } as const;
    const rest = { windowMax, expiryMs: 1_000_000, onConnected: () => {} };
    const attached = this.#engine.broker.attach({ ...request, ...rest }, this.peer);
    [this.attachment] = await Promise.all([attached, this.#engine.clock.settle()]);
    const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    await this.attachment.subscribe([{ ...options, filter }]);
  }

  /** Identifiers of the events that came since the last call. */
  collect(): readonly string[] {
    const ids = this.peer.deliveries.slice(this.#seen).map(({ eventId }) => eventId);
    this.#seen = this.peer.deliveries.length;
    for (const id of ids) this.held.add(id);
    return ids;
  }

  /** Acknowledges an event, and returns its identifier. */
  acknowledge(which: number): string | undefined {
    const waiting = this.peer.deliveries.filter(({ eventId }) => this.held.has(eventId));
    const delivery = waiting[which % Math.max(1, waiting.length)];
    if (delivery === undefined) return undefined;
    this.held.delete(delivery.eventId);
    this.attachment?.session.acknowledge(delivery.ticket ?? 0);
    return delivery.eventId;
  }

  die(isKept: boolean): void {
    this.attachment?.detach({ expiryMs: isKept ? 1_000_000 : 0, isRegular: true });
    this.attachment = undefined;
    this.held.clear();
  }
}

/** Runs a history. Returns the events published while the share had a member, and the acknowledged ones. */
async function run(steps: readonly Step[]) {
  const engine = await TestEngine.start({ limits: { feedEventsMax: 3, readBatchesMax: 2 } });
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
  // The anchor never leaves the share, connected or not, so that the share continues to exist.
  const anchor = new Client(engine, "anchor");
  await anchor.attach(1);
  const clients = [anchor, new Client(engine, "second"), new Client(engine, "third")];
  const published: string[] = [];
  const acknowledged = new Set<string>();
  const look = async (): Promise<void> => {
    await engine.clock.settle();
    for (const client of clients) {
      for (const id of client.collect()) {
        expect(acknowledged.has(id), `${id} came after it was acknowledged`).toBe(false);
        const holders = clients.filter(({ held }) => held.has(id));
        expect(holders, `${id} is with one member at a time`).toHaveLength(1);
      }
    }
  };
  for (const one of steps) {
    const client = "who" in one ? clients[one.who] : undefined;
    if (one.kind === "publish") {
      for (let count = 0; count < one.count; count += 1) published.push(await engine.publish("a", "x"));
    } else if (one.kind === "attach") await client?.attach(one.windowMax);
    else if (one.kind === "die") client?.die(one.isKept || client === anchor);
    else if (one.kind === "leave") {
      if (client !== anchor) await client?.attachment?.unsubscribe([filter]);
    } else {
      const id = client?.acknowledge(one.which);
      if (id !== undefined) acknowledged.add(id);
    }
    await look();
  }
  await anchor.attach(2);
  for (const client of clients.slice(1)) client.die(false);
  for (let count = -1; count < acknowledged.size; ) {
    count = acknowledged.size;
    await look();
    for (let id = anchor.acknowledge(0); id !== undefined; id = anchor.acknowledge(0)) acknowledged.add(id);
  }
  await engine.stop();
  return { published, acknowledged };
}

it("delivers each event to one member at a time, and loses none, while clients join, leave and die", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { published, acknowledged } = await run(steps);
      expect([...acknowledged].toSorted()).toEqual(published.toSorted());
    }),
    { numRuns: 80 },
  );
}, 120_000);
