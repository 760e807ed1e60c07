import { decodeEvents } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { TransactionOutcome } from "../broker.ts";
import type { CalledBroker } from "../testing/as-caller.ts";
import { faults, FaultyPorts } from "../testing/faulty-ports.ts";
import { startOnFaultyPorts } from "../testing/start-on-faulty-ports.ts";

const topics = ["a", "b", "c"];
/** A time, in milliseconds, that is longer than any transaction takes. */
const answerMsMax = 20_000;

/** A step of a client: a transaction with one event for each of `topics`; without `isTransaction`, with one event for the first topic. */
const step = fc.record({
  isTransaction: fc.boolean(),
  topics: fc.array(fc.constantFrom(...topics), { minLength: 1, maxLength: 5 }),
});
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

class World {
  readonly clock = new VirtualClock();
  readonly chain = new MemoryChain({ clock: this.clock });
  readonly store = createMemoryStore();

  async start(ports: FaultyPorts): Promise<CalledBroker> {
    const { clock, chain, store } = this;
    const broker = await startOnFaultyPorts({ clock, chain, store, nextUuid: () => "unused" }, ports);
    const opened = Promise.all(topics.map((topic) => broker.open({ topic, groupId: undefined })));
    await clock.settle();
    await opened;
    return broker;
  }

  /** Returns the status of the transaction; undefined if it has no answer in time, since the process died. */
  async submit(
    broker: CalledBroker,
    { texts, topics: names }: { texts: readonly string[]; topics: readonly string[] },
  ) {
    const outcomes: TransactionOutcome[] = [];
    const calls = names.map((topic, index) => {
      const content = new TextEncoder().encode(texts[index]);
      return { topic, groupId: undefined, content, extensions: [] };
    });
    broker.submitAll(calls, (settled) => outcomes.push(settled));
    for (let waited = 0; waited < answerMsMax && outcomes.length === 0; waited += 100) await this.clock.advance(100);
    return outcomes[0]?.status;
  }

  /** The contents of each transaction of the chain, in order. */
  transactions(): readonly (readonly string[])[] {
    const byHash = new Map<string, string[]>();
    for (let number = 0; number <= this.chain.head; number += 1) {
      for (const entry of this.chain.find(number)?.entries ?? []) {
        if (entry.kind !== "events-committed") continue;
        const texts = decodeEvents(entry.events).map(({ content }) => new TextDecoder().decode(content));
        byHash.set(entry.transactionHash, [...(byHash.get(entry.transactionHash) ?? []), ...texts]);
      }
    }
    return [...byHash.values()];
  }
}

async function run(steps: readonly Step[], ports: FaultyPorts): Promise<void> {
  const world = new World();
  const broker = await world.start(ports);
  ports.isArmed = true;
  for (const [number, { topics: names, isTransaction }] of steps.entries()) {
    const used = isTransaction ? names : names.slice(0, 1);
    const texts = used.map((_, index) => `${number}.${index}`);
    const status = await world.submit(broker, { texts, topics: used });
    const carrying = world.transactions().filter((all) => all.some((text) => texts.includes(text)));
    const sorted = carrying.map((all) => all.toSorted());
    if (status === "SUCCESS") expect(sorted).toEqual([texts]);
    else if (status === "REFUSED") expect(sorted).toEqual([]);
    else expect([[], [texts]]).toContainEqual(sorted);
  }
}

it("commits all events of a transaction or none, whichever port call fails or kills the process", async () => {
  const order = fc.record({
    steps: fc.array(step, { minLength: 1, maxLength: 6 }),
    at: fc.integer({ min: 1, max: 20 }),
    fault: fc.constantFrom(...faults),
  });
  await fc.assert(
    fc.asyncProperty(order, ({ steps, at, fault }) => run(steps, new FaultyPorts(at, fault))),
    { numRuns: 60 },
  );
}, 60_000);

it("commits all events of a transaction or none in a fixed scenario, with each fault at each port call", async () => {
  const steps: readonly Step[] = [
    { isTransaction: true, topics: ["a", "b", "a"] },
    { isTransaction: false, topics: ["a"] },
    { isTransaction: true, topics: ["c", "b"] },
  ];
  for (const fault of faults) {
    for (let at = 1; ; at += 1) {
      const ports = new FaultyPorts(at, fault);
      await run(steps, ports);
      if (ports.calls < at) break;
    }
  }
}, 60_000);
