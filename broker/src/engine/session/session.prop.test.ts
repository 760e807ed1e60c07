import fc from "fast-check";
import { expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import type { Attachment } from "../broker.ts";

type Step =
  | { readonly kind: "publish"; readonly topic: "a" | "b"; readonly count: number }
  | { readonly kind: "acknowledge" | "receive"; readonly which: number }
  | { readonly kind: "reconnect"; readonly windowMax: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      topic: fc.constantFrom("a", "b"),
      count: fc.integer({ min: 1, max: 6 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("acknowledge" as const, "receive" as const), which: fc.nat(20) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("reconnect" as const), windowMax: fc.integer({ min: 1, max: 5 }) }),
  },
);

/** A client of one session that remembers its events over all of its connections. */
class Client {
  readonly acknowledged = new Set<string>();
  readonly received = new Set<string>();
  readonly #engine: TestEngine;
  peer = new RecordingPeer();
  attachment: Attachment | undefined;

  constructor(engine: TestEngine) {
    this.#engine = engine;
  }

  async begin(): Promise<void> {
    this.attachment = await this.#attach(3);
    const filters = ["a", "#"].map((text) => parseTopicFilter(text));
    const options = { qos: 2 as const, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
    await this.attachment.subscribe(filters.map((filter) => ({ ...options, filter })));
  }

  /** Checks that events came in order, once per connection, and not again after they were acknowledged or received. */
  collect(): void {
    for (const { eventId } of this.peer.deliveries) {
      expect(this.acknowledged.has(eventId) || this.received.has(eventId), `${eventId} came again`).toBe(false);
    }
    const ids = this.peer.deliveries.map(({ eventId }) => eventId);
    expect(new Set(ids).size).toBe(ids.length);
    const positions = this.peer.deliveries.map(({ event }) => event.position);
    expect(positions).toEqual(positions.toSorted((left, right) => left - right));
  }

  answer(kind: "acknowledge" | "receive", which: number): void {
    const waiting = this.peer.deliveries.filter(({ eventId }) => !this.acknowledged.has(eventId));
    const delivery = waiting[which % Math.max(1, waiting.length)];
    if (delivery?.ticket === undefined) return;
    if (kind === "acknowledge") this.#settled.add(delivery.eventId);
    else this.#seen.add(delivery.eventId);
    this.attachment?.session[kind](delivery.ticket);
  }

  readonly #settled = new Set<string>();
  readonly #seen = new Set<string>();

  async reconnect(windowMax: number): Promise<void> {
    this.collect();
    for (const id of this.#settled) this.acknowledged.add(id);
    for (const id of this.#seen) this.received.add(id);
    this.attachment?.detach({ expiryMs: 1_000_000, isRegular: true });
    this.peer = new RecordingPeer();
    this.attachment = await this.#attach(windowMax);
  }

  async #attach(windowMax: number): Promise<Attachment> {
    const request = {
      groupId: undefined,
      protocol: "MQTT" as const,
      key: "c",
      isClean: false,
      windowMax,
      will: undefined,
      expiryMs: 60_000,
      onConnected: () => {},
    };
    const attached = this.#engine.broker.attach(request, this.peer);
    await this.#engine.clock.settle();
    return attached;
  }
}

it("delivers every matching event at least once, and no acknowledged event again, under any history", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps: readonly Step[]) => {
      const engine = await TestEngine.start({ limits: { feedEventsMax: 3, readBatchesMax: 2 } });
      for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
      const client = new Client(engine);
      await client.begin();
      const published: string[] = [];
      for (const one of steps) {
        if (one.kind === "publish") {
          for (let index = 0; index < one.count; index += 1) published.push(await engine.publish(one.topic, "x"));
        } else if (one.kind === "reconnect") await client.reconnect(one.windowMax);
        else client.answer(one.kind, one.which);
        await engine.clock.settle();
      }
      // In the end the client acknowledges everything, with a small window.
      await client.reconnect(2);
      for (let count = -1; count < client.peer.deliveries.length; ) {
        count = client.peer.deliveries.length;
        await engine.clock.settle();
        for (const ticket of client.peer.released) client.attachment?.session.acknowledge(ticket);
        for (const { ticket } of client.peer.deliveries) client.attachment?.session.acknowledge(ticket ?? 0);
        await engine.clock.settle();
      }
      client.collect();
      const last = client.peer.deliveries.map(({ eventId }) => eventId);
      const all = new Set([...last, ...client.acknowledged, ...client.received]);
      expect([...all].toSorted()).toEqual(published.toSorted());
      await engine.stop();
    }),
    { numRuns: 60 },
  );
}, 60_000);
