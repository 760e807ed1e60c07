import { expect, it } from "vitest";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { PublishOutcome } from "../broker.ts";
import { contentsOnChain } from "../testing/contents-on-chain.ts";
import type { CalledBroker } from "../testing/as-caller.ts";
import { faults, FaultyPorts } from "../testing/faulty-ports.ts";
import { startOnFaultyPorts } from "../testing/start-on-faulty-ports.ts";

const session = { id: "00000000-0000-4000-8000-00000000aaaa" };
/** A time, in milliseconds, that is longer than any repeat waits. */
const answerMsMax = 70_000;
const triesMax = 6;
/** Packet identifiers and contents of the publishes. Each identifier is used twice or more, also with the same content. */
const messages = [
  ["1", "same"],
  ["2", "same"],
  ["1", "same"],
  ["2", "other"],
  ["1", "other"],
] as const;

/** A chain and a store that outlive brokers, and the publishes of an MQTT client. */
class World {
  readonly clock = new VirtualClock();
  readonly chain = new MemoryChain({ clock: this.clock });
  readonly #store = createMemoryStore();
  #uuids = 0;
  #tries = 0;

  start(ports: FaultyPorts): Promise<CalledBroker> {
    const { clock, chain } = this;
    return startOnFaultyPorts({ clock, chain, store: this.#store, nextUuid: () => this.#nextUuid() }, ports);
  }

  /** Starts a broker that has the topic. */
  async startWithoutFaults(): Promise<CalledBroker> {
    const broker = await this.start(new FaultyPorts(Number.POSITIVE_INFINITY, "fails before"));
    const opened = broker.open({ topic: "a", groupId: undefined });
    await this.clock.settle();
    await opened;
    return broker;
  }

  /** Returns whether the publish was acknowledged. The extension differs at each try, like that of a message that expires. */
  async publish(broker: CalledBroker, [key, text]: readonly [string, string]): Promise<boolean> {
    let outcome: PublishOutcome | undefined;
    const extensions = [["svc-expires-at", String((this.#tries += 1))]] as const;
    const content = new TextEncoder().encode(text);
    broker.submit(
      { topic: "a", groupId: undefined, content, extensions, key, session },
      (settled) => (outcome = settled),
    );
    await this.#wait(() => outcome !== undefined);
    return outcome?.status === "SUCCESS";
  }

  async release(broker: CalledBroker, key: string): Promise<boolean> {
    let isReleased: boolean | undefined;
    broker.release({ groupId: undefined, session, key }).then(
      () => (isReleased = true),
      () => (isReleased = false),
    );
    await this.#wait(() => isReleased !== undefined);
    return isReleased === true;
  }

  async #wait(isDone: () => boolean): Promise<void> {
    for (let waited = 0; waited < answerMsMax && !isDone(); waited += 100) await this.clock.advance(100);
  }

  #nextUuid(): string {
    this.#uuids += 1;
    return `00000000-0000-4000-8000-${String(this.#uuids).padStart(12, "0")}`;
  }
}

/** Repeats each step until it is acknowledged, with a fault at port call `at`. Returns whether there were that many calls. */
async function runWithFault(at: number, fault: (typeof faults)[number]): Promise<boolean> {
  const world = new World();
  const ports = new FaultyPorts(at, fault);
  let broker = await world.start(ports);
  const opened = broker.open({ topic: "a", groupId: undefined });
  await world.clock.settle();
  await opened;
  ports.isArmed = true;
  let isReplaced = false;
  const repeat = async (step: () => Promise<boolean>): Promise<void> => {
    for (let tries = 0; tries < triesMax; tries += 1) {
      if (ports.isDead && !isReplaced) {
        broker = await world.start(new FaultyPorts(Number.POSITIVE_INFINITY, fault));
        isReplaced = true;
      }
      if (await step()) return;
    }
    throw new Error(`not acknowledged: ${fault}, call ${at}`);
  };
  for (const message of messages) {
    await repeat(() => world.publish(broker, message));
    await repeat(() => world.publish(broker, message)); // its acknowledgement was lost
    await repeat(() => world.release(broker, message[0]));
    await repeat(() => world.release(broker, message[0]));
  }
  expect(contentsOnChain(world), `${fault}, call ${at}`).toEqual(messages.map(([, text]) => text));
  return ports.calls >= at;
}

it("each message of a session gives one event, whichever port call fails or kills the process", async () => {
  for (const fault of faults) {
    let at = 1;
    while (await runWithFault(at, fault)) at += 1;
    expect(at).toBeGreaterThan(3);
  }
}, 120_000);

it("keeps the order of messages if the identifier of one was used before and not released", async () => {
  const world = new World();
  const broker = await world.startWithoutFaults();
  expect(await world.publish(broker, ["1", "one"])).toBe(true);
  const keys = ["3", "1", "2"];
  const accepted = await Promise.all(keys.map((key) => world.publish(broker, [key, `again ${key}`])));
  expect(accepted).toEqual([true, true, true]);
  expect(contentsOnChain(world)).toEqual(["one", ...keys.map((key) => `again ${key}`)]);
});

it("publishes a new message under a packet identifier that its client forgot to release", async () => {
  const world = new World();
  const broker = await world.startWithoutFaults();
  for (const text of ["one", "two", "two", "one"]) expect(await world.publish(broker, ["1", text])).toBe(true);
  expect(contentsOnChain(world)).toEqual(["one", "two", "one"]);
});
