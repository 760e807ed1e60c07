import { startEmbeddedChain } from "@stele/chain";
import * as fc from "fast-check";
import { custom } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { batchRejectedReason as reasons, everyone } from "./constants.ts";
import { batchOf } from "./testing/batches.ts";
import { alice, bob, carol, decodeLogs, RegistryFixture } from "./testing/registry-fixture.ts";

const accounts = [alice, bob, carol];
const names = ["a", "b", "c", "d"];

let stop = async (): Promise<void> => {};
let chain: Awaited<ReturnType<typeof startEmbeddedChain>>;

beforeAll(async () => {
  const genesisAccounts = accounts.map(({ address }) => address);
  chain = await startEmbeddedChain({ file: ":memory:", chainId: 31_337, genesisAccounts });
  stop = () => chain.stop();
});

afterAll(() => stop());

/** One transaction by account number `by`. Alice owns set 1; Bob is a member. A batch claims to have `count` events and has `held`. */
type Step =
  | { readonly kind: "open"; readonly by: number; readonly names: readonly string[]; readonly writers: number }
  | { readonly kind: "close"; readonly by: number; readonly name: string }
  | {
      readonly kind: "publish";
      readonly by: number;
      readonly batches: readonly { readonly name: string; readonly count: number; readonly held: number }[];
    };

const by = fc.nat({ max: accounts.length - 1 });
const name = fc.constantFrom(...names);
const count = fc.integer({ min: 0, max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("open" as const),
    by,
    names: fc.array(name, { maxLength: 4 }),
    writers: fc.constantFrom(everyone, 1),
  }),
  fc.record({ kind: fc.constant("close" as const), by, name }),
  fc.record({
    kind: fc.constant("publish" as const),
    by,
    batches: fc.array(fc.record({ name, count, held: count }), { maxLength: 5 }),
  }),
);

interface Topic {
  sequence: number;
  isClosed: boolean;
  readonly owner: number;
  readonly writers: number;
}

/** A model of the registry, with plain objects instead of packed storage. */
class Model {
  readonly topics = new Map<string, Topic>();

  /** The logs that the registry should emit for the step, as text; undefined if the call should revert. */
  run(step: Step): readonly string[] | undefined {
    if (step.kind === "open") return this.#open(step);
    if (step.kind === "close") return this.#close(step);
    return step.batches.map((batch) => this.#publish(batch, step.by));
  }

  #open({ by, names: wanted, writers }: Extract<Step, { kind: "open" }>): readonly string[] | undefined {
    if (!isMember(writers, by)) return undefined;
    return wanted.flatMap((name) => {
      const topic = this.topics.get(name);
      if (topic === undefined) this.topics.set(name, { sequence: 0, isClosed: false, owner: by, writers });
      if (topic === undefined) return `TopicOpened ${name}`;
      if (!topic.isClosed) return [];
      if (!mayWrite(topic, by)) return `OpenRejected ${name}`;
      topic.isClosed = false;
      return `TopicReopened ${name}`;
    });
  }

  #close({ by, name }: Extract<Step, { kind: "close" }>): readonly string[] | undefined {
    const topic = this.topics.get(name);
    if (topic === undefined || !mayWrite(topic, by)) return undefined;
    if (topic.isClosed) return [];
    topic.isClosed = true;
    return [`TopicClosed ${name}`];
  }

  #publish({ name, count, held }: { name: string; count: number; held: number }, by: number): string {
    const topic = this.topics.get(name);
    const rejected = (reason: number): string => `BatchRejected ${name} ${reason}`;
    if (topic === undefined) return rejected(reasons.topicUnknown);
    if (topic.isClosed) return rejected(reasons.topicClosed);
    if (count === 0) return rejected(reasons.batchEmpty);
    if (count > held) return rejected(reasons.countTooLarge);
    if (!mayWrite(topic, by)) return rejected(reasons.notAWriter);
    topic.sequence += count;
    return `EventsPublished ${name} ${topic.sequence - count + 1} ${count}`;
  }
}

function isMember(writers: number, account: number): boolean {
  return writers === everyone || account < 2;
}

function mayWrite({ writers, owner }: Topic, account: number): boolean {
  return writers === everyone || owner === account || isMember(writers, account);
}

/** Runs the step on the chain and returns its logs as text; undefined if the call reverts. */
async function runOnChain(fixture: RegistryFixture, step: Step): Promise<readonly string[] | undefined> {
  const account = accounts[step.by] ?? alice;
  const receipt = await send(fixture, step, account).catch(() => undefined);
  if (receipt === undefined) return undefined;
  const nameAt = new Map(names.map((one) => [fixture.addressOf(one), one]));
  return decodeLogs(receipt).map(({ eventName, args }) => {
    const text = `${eventName} ${nameAt.get("topic" in args ? args.topic : "0x")}`;
    if ("firstSequence" in args) return `${text} ${args.firstSequence} ${args.count}`;
    return "reason" in args ? `${text} ${args.reason}` : text;
  });
}

function send(fixture: RegistryFixture, step: Step, account: typeof alice) {
  if (step.kind === "open") return fixture.open(step.names, account, step.writers);
  if (step.kind === "close") return fixture.close(step.name, account);
  const batches = step.batches.map(({ name, count, held }) => {
    return batchOf(fixture.addressOf(name), count, `0x${"c280c0".repeat(held)}`);
  });
  return fixture.publish(batches, account);
}

/** Number of random sequences. Each takes over a second: it deploys a registry and waits for a block after each step. */
const rounds = Number(process.env["CHECKS_ROUNDS"] ?? "10");

test("the registry's logs and state match the model for random calls in random order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const fixture = await RegistryFixture.deploy(custom(chain, { retryCount: 0 }));
      expect(await fixture.createWriters([bob.address])).toBe(1);
      const model = new Model();
      for (const one of steps) expect(await runOnChain(fixture, one)).toEqual(model.run(one));
      for (const [name, { sequence, isClosed, owner, writers }] of model.topics) {
        expect(await fixture.stateOf(fixture.addressOf(name))).toMatchObject({
          name,
          sequence: BigInt(sequence),
          closed: isClosed,
          sender: accounts[owner]?.address,
          writers,
        });
      }
      expect(await fixture.topicCount()).toBe(BigInt(model.topics.size));
    }),
    { numRuns: rounds },
  );
}, 120_000);
