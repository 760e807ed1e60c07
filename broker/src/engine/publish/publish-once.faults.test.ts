import { expect, it } from "vitest";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import type { Store } from "../../ports/store.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { createSqlStore } from "../../store/sql/sql-store.ts";
import { migratedFile } from "../../store/sql/migrations/migrated-file.contract.ts";
import type { PublishOutcome } from "../broker.ts";
import { contentsOnChain } from "../testing/contents-on-chain.ts";
import type { CalledBroker } from "../testing/as-caller.ts";
import { type Fault, faults, FaultyPorts } from "../testing/faulty-ports.ts";
import { startOnFaultyPorts } from "../testing/start-on-faulty-ports.ts";

const keys = ["k0", "k1", "k2", "k3"];
const triesMax = 5;
/** A time, in milliseconds, that is longer than any repeat waits. */
const answerMsMax = 70_000;
/** A chain and a store that outlive brokers. */
class World {
  readonly clock = new VirtualClock();
  readonly chain = new MemoryChain({ clock: this.clock });
  readonly #store: Store;
  #uuids = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  start(ports: FaultyPorts): Promise<CalledBroker> {
    const { clock, chain } = this;
    return startOnFaultyPorts({ clock, chain, store: this.#store, nextUuid: () => this.#nextUuid() }, ports);
  }

  /** Publishes each key twice at once. Returns the outcomes, which are undefined without an answer. */
  async publishAll(broker: CalledBroker): Promise<ReadonlyMap<string, readonly (PublishOutcome | undefined)[]>> {
    const outcomes = new Map(keys.map((key) => [key, [undefined, undefined] as (PublishOutcome | undefined)[]]));
    for (const turn of [0, 1]) {
      for (const [key, both] of outcomes) {
        const call = { topic: "a", groupId: undefined, content: new TextEncoder().encode(key), extensions: [], key };
        broker.submit(call, (outcome) => void (both[turn] = outcome));
      }
    }
    await this.clock.advance(answerMsMax);
    return outcomes;
  }

  #nextUuid(): string {
    this.#uuids += 1;
    return `00000000-0000-4000-8000-${String(this.#uuids).padStart(12, "0")}`;
  }
}

function noteAnswers(
  outcomes: ReadonlyMap<string, readonly (PublishOutcome | undefined)[]>,
  answered: ReadonlyMap<string, Set<string>>,
): void {
  const all = [...outcomes].flatMap(([key, both]) => both.map((outcome) => ({ key, outcome })));
  for (const { key, outcome } of all) if (outcome?.status === "SUCCESS") answered.get(key)?.add(outcome.eventId);
}

/** Publishes every key until it is answered with SUCCESS, with a fault at port call `at`. Returns whether there were that many calls. */
async function runWithFault(createStore: () => Promise<Store>, at: number, fault: Fault): Promise<boolean> {
  const world = new World(await createStore());
  const ports = new FaultyPorts(at, fault);
  let broker = await world.start(ports);
  const opened = broker.open({ topic: "a", groupId: undefined });
  await world.clock.settle();
  await opened;
  ports.isArmed = true;
  const answered = new Map(keys.map((key) => [key, new Set<string>()]));
  for (let tries = 0; tries < triesMax && [...answered.values()].some(({ size }) => size === 0); tries += 1) {
    if (ports.isDead) broker = await world.start(new FaultyPorts(Number.POSITIVE_INFINITY, fault));
    const outcomes = await world.publishAll(broker);
    noteAnswers(outcomes, answered);
  }
  const again = await world.publishAll(
    ports.isDead ? await world.start(new FaultyPorts(Number.POSITIVE_INFINITY, fault)) : broker,
  );
  noteAnswers(again, answered);
  for (const [key, ids] of answered) {
    expect([key, ids.size], `${fault}, call ${at}`).toEqual([key, 1]);
  }
  expect(contentsOnChain(world).toSorted()).toEqual(keys);
  const stopped = broker.stop(0);
  await world.clock.advance(1_000);
  if (!ports.isDead) await stopped;
  return ports.calls >= at;
}

it.each([
  ["memory", async () => createMemoryStore()],
  ["SQLite", async () => new StoreOverLives(createSqlStore({ file: await migratedFile() })).store],
] as const)(
  "each key gives one event, whichever port call fails or kills the process (%s)",
  async (_, createStore) => {
    for (const fault of faults) {
      let at = 1;
      while (await runWithFault(createStore, at, fault)) at += 1;
      expect(at).toBeGreaterThan(3);
    }
  },
  120_000,
);

/** A store that starts once and never stops, however often brokers start and stop it. */
class StoreOverLives {
  readonly store: Store;
  #started: Promise<void> | undefined;

  constructor(store: Store) {
    this.store = new Proxy(store, {
      get: (target, name) => {
        if (name === "start") return () => (this.#started ??= target.start());
        if (name === "stop") return async () => {};
        const member: unknown = Reflect.get(target, name, target);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }
}
