import { BrokerError } from "@stele/wire";
import fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import type { Ledger } from "../../ports/ledger.ts";
import type { PublishCall, PublishOutcome } from "../broker.ts";
import { contentsOnChain } from "../testing/contents-on-chain.ts";
import { TestCluster, type TestClusterOptions } from "../testing/test-cluster.ts";

let cluster: TestCluster;
afterEach(async () => cluster.stopAll());

const callOf = (key: string): PublishCall => ({
  topic: "a",
  groupId: undefined,
  content: new TextEncoder().encode(key),
  extensions: [],
  key,
});

async function start(count: number, options: TestClusterOptions = {}): Promise<void> {
  cluster = await TestCluster.start(count, options);
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  await cluster.clock.advance(1_000);
}

/** Starts two nodes that know the topic. Each message to or from the store takes 100 ms. The next publish records its key at once. */
async function startWarm(): Promise<void> {
  await start(2, { delayMs: () => 100 });
  for (const index of [0, 1]) await send(index, `w${index}`);
}

/** Publishes at a node, without waiting. */
function submit(index: number, key: string): { outcome: PublishOutcome | undefined } {
  const answer: { outcome: PublishOutcome | undefined } = { outcome: undefined };
  try {
    cluster.node(index).broker.submit(callOf(key), (outcome) => (answer.outcome = outcome));
  } catch (error) {
    answer.outcome = { status: "REFUSED", error };
  }
  return answer;
}

/** Publishes at a node and returns the answer; undefined if the node does not answer within `waitMs`. */
async function send(index: number, key: string, waitMs = 70_000): Promise<PublishOutcome | undefined> {
  const answer = submit(index, key);
  for (let waited = 0; answer.outcome === undefined && waited < waitMs; waited += 500) await cluster.clock.advance(500);
  return answer.outcome;
}

/** Repeats at all nodes at once until all return the event: if the node that recorded the key is up, only it can publish again. */
async function sendUntilAnswered(key: string): Promise<readonly string[]> {
  for (let tries = 0; tries < 5; tries += 1) {
    const answers = Array.from({ length: nodes }, (_, index) => submit(index, key));
    await cluster.clock.advance(40_000);
    const ids = answers.flatMap(({ outcome }) => (outcome?.status === "SUCCESS" ? outcome.eventId : []));
    if (ids.length === nodes) return ids;
  }
  throw new Error(`not every node has an answer for ${key}`);
}

/** Expects that a publish of "k" was refused, and that a repeat at node 1 publishes it once. */
async function expectRepeatable(refused: ReturnType<typeof submit>): Promise<void> {
  expect(refused.outcome).toMatchObject({ status: "REFUSED" });
  expect(await send(1, "k", 5_000)).toMatchObject({ status: "SUCCESS" });
  expect(contentsOnChain(cluster)).toEqual(["w0", "w1", "k"]);
}

it("a repeat at another node returns the same event", async () => {
  await start(2);
  const first = await send(0, "k");
  expect(first).toMatchObject({ status: "SUCCESS" });
  expect(await send(1, "k")).toEqual(first);
  expect(contentsOnChain(cluster)).toEqual(["k"]);
});

it("the same key at three nodes at once gives one event", async () => {
  await start(3, { delayMs: () => 20 });
  const answers = [0, 1, 2].map((index) => submit(index, "k"));
  await cluster.clock.advance(35_000);
  const [first] = answers;
  expect(first?.outcome).toMatchObject({ status: "SUCCESS" });
  for (const { outcome } of answers) expect(outcome).toEqual(first?.outcome);
  expect(contentsOnChain(cluster)).toEqual(["k"]);
});

it("a repeat of a publish whose node died after recording the key waits until the death is known, then publishes", async () => {
  await startWarm();
  submit(0, "k");
  await cluster.clock.advance(150);
  cluster.kill(0);
  const early = submit(1, "k");
  await cluster.clock.advance(3_000);
  expect(early.outcome).toBeUndefined();
  expect(contentsOnChain(cluster)).toEqual(["w0", "w1"]);
  await cluster.clock.advance(20_000);
  expect(early.outcome).toMatchObject({ status: "SUCCESS" });
  expect(await send(1, "k")).toEqual(early.outcome);
  expect(contentsOnChain(cluster)).toEqual(["w0", "w1", "k"]);
});

it("a node that freezes between recording a key and publishing does not publish if another node has published with that key meanwhile", async () => {
  await startWarm();
  const slept = submit(0, "k");
  await cluster.clock.advance(150);
  cluster.node(0).gate.halt();
  await cluster.clock.advance(15_000);
  const repeat = await send(1, "k");
  expect(repeat).toMatchObject({ status: "SUCCESS" });
  cluster.node(0).gate.resume();
  await cluster.clock.advance(70_000);
  expect(slept.outcome).toMatchObject({ status: "REFUSED" });
  expect(contentsOnChain(cluster)).toEqual(["w0", "w1", "k"]);
  expect(await send(0, "k")).toEqual(repeat);
  expect(await send(1, "k")).toEqual(repeat);
});

it("a publish that was refused because the store's answer about its key was lost succeeds at another node", async () => {
  await startWarm();
  const refused = submit(0, "k");
  await cluster.clock.advance(150);
  cluster.node(0).gate.cut("refused");
  await cluster.clock.advance(1_000);
  cluster.node(0).gate.heal();
  await cluster.clock.advance(2_000);
  await expectRepeatable(refused);
});

it("a publish that was refused because its node does not reach the chain succeeds at another node", async () => {
  let isReached = true;
  const toLedger = (ledger: Ledger, index: number): Ledger => {
    const append = ledger.append.bind(ledger);
    ledger.append = async (...call) => {
      if (index === 0 && !isReached) throw new BrokerError("chainUnreachable");
      return append(...call);
    };
    return ledger;
  };
  await start(2, { toLedger });
  isReached = false;
  expect(await send(0, "k")).toMatchObject({ status: "REFUSED" });
  expect(await send(1, "k", 5_000)).toMatchObject({ status: "SUCCESS" });
  expect(contentsOnChain(cluster)).toEqual(["k"]);
});

it("a publish that the chain refused while the store was away succeeds at another node", async () => {
  let isRefused = false;
  const toLedger = (ledger: Ledger, index: number): Ledger => {
    const append = ledger.append.bind(ledger);
    ledger.append = async (...call) => {
      if (index > 0 || !isRefused) return append(...call);
      cluster.node(0).gate.cut("refused");
      throw new BrokerError("transactionFailed");
    };
    return ledger;
  };
  await start(2, { delayMs: () => 100, toLedger });
  for (const index of [0, 1]) await send(index, `w${index}`);
  isRefused = true;
  const refused = submit(0, "k");
  await cluster.clock.advance(1_000);
  cluster.node(0).gate.heal();
  await cluster.clock.advance(2_000);
  await expectRepeatable(refused);
});

it("a publish that fails because its node is no member succeeds at another node", async () => {
  await startWarm();
  const { gate } = cluster.node(0);
  gate.cut("refused");
  await cluster.clock.advance(5_200); // Its membership has ended here, but not yet at the coordinator, so it cannot join again.
  gate.heal();
  const refused = submit(0, "k");
  await cluster.clock.advance(10_000);
  await expectRepeatable(refused);
});

it("a node that loses its membership before its ledger sends a publish refuses it with 200207, and another node accepts it", async () => {
  let isSlow = false;
  const toLedger = (ledger: Ledger, index: number): Ledger => {
    const append = ledger.append.bind(ledger);
    ledger.append = async (...call) => {
      if (index === 0 && isSlow) await new Promise<void>((resolve) => void cluster.clock.after(9_000, resolve));
      return append(...call);
    };
    return ledger;
  };
  await start(2, { toLedger });
  for (const index of [0, 1]) await send(index, `w${index}`);
  isSlow = true;
  const refused = submit(0, "k");
  const { key: _, ...plain } = callOf("plain");
  const outcomes: PublishOutcome[] = [];
  cluster.node(0).broker.submit(plain, (outcome) => outcomes.push(outcome)); // In the same transaction.
  await cluster.clock.advance(100);
  cluster.node(0).gate.cut("refused");
  await cluster.clock.advance(10_000);
  const refusal = { status: "REFUSED", error: { code: 200_207 } };
  expect([refused.outcome, ...outcomes]).toMatchObject([refusal, refusal]);
  await expectRepeatable(refused);
});

it("publishes an event once if a client repeats the request while its node frees a key whose record got no answer", async () => {
  await startWarm();
  submit(0, "k");
  await cluster.clock.advance(150);
  cluster.node(0).gate.cut("refused");
  await cluster.clock.advance(100);
  cluster.node(0).gate.heal();
  for (let elapsedMs = 0; elapsedMs < 2_000; elapsedMs += 50) {
    submit(0, "k");
    await cluster.clock.advance(50);
  }
  const first = await send(0, "k");
  expect(first).toMatchObject({ status: "SUCCESS" });
  await cluster.clock.advance(5_000);
  expect(await send(1, "k")).toEqual(first);
  expect(contentsOnChain(cluster)).toEqual(["w0", "w1", "k"]);
});

type Step =
  | { readonly kind: "publish"; readonly node: number; readonly key: string }
  | { readonly kind: "kill" | "launch" | "halt" | "resume" | "cut" | "heal"; readonly node: number }
  | { readonly kind: "wait"; readonly ms: number };

const nodes = 3;
const node = fc.nat(nodes - 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("publish" as const), node, key: fc.constantFrom("k1", "k2", "k3") }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("kill" as const, "launch", "halt", "resume", "cut", "heal"), node }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.constantFrom(10, 60, 110, 160, 1_000, 8_000) }),
  },
);

async function take(one: Step, answers: Map<string, Set<string>>): Promise<void> {
  if (one.kind === "wait") {
    await cluster.clock.advance(one.ms);
    return;
  }
  const found = cluster.find(one.node);
  if (one.kind === "launch" && found === undefined) cluster.launch(one.node);
  if (found === undefined) return;
  if (one.kind === "kill") cluster.kill(one.node);
  else if (one.kind === "halt") found.gate.halt();
  else if (one.kind === "resume") found.gate.resume();
  else if (one.kind === "cut") found.gate.cut("silent");
  else if (one.kind === "heal") found.gate.heal();
  else if (one.kind === "publish") {
    const note = (outcome: PublishOutcome): void => {
      if (outcome.status === "SUCCESS") answers.get(one.key)?.add(outcome.eventId);
    };
    try {
      found.broker.submit(callOf(one.key), note);
    } catch {
      return; // The node is not up.
    }
  }
}

it("each key gives one event while nodes die, freeze and are cut off", async () => {
  const run = fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
    await start(nodes, { delayMs: () => 50 });
    const answers = new Map(["k1", "k2", "k3"].map((key) => [key, new Set<string>()]));
    for (const one of steps) await take(one, answers);
    await cluster.recover(nodes, 60_000);
    for (const [key, ids] of answers) {
      for (const eventId of await sendUntilAnswered(key)) ids.add(eventId);
      expect(ids.size).toBe(1);
    }
    expect(contentsOnChain(cluster).toSorted()).toEqual(["k1", "k2", "k3"]);
    await cluster.stopAll();
  });
  await fc.assert(run, { numRuns: Number(process.env["PROPERTY_RUNS"] ?? "6") });
}, 240_000);
