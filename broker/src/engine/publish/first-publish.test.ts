import { BrokerError } from "@stele/wire";
import { afterEach, expect, it } from "vitest";
import type { Ledger } from "../../ports/ledger.ts";
import type { OnSettled, Placement, PublishCall, PublishOutcome } from "../broker.ts";
import { allowAll } from "../access/policy.ts";
import { keyedCall } from "../testing/keyed-publish.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { openingPublishesMax } from "./first-publish.ts";

let engine: TestEngine;
afterEach(() => engine.stop());

const call = (topic: string, text = "x"): PublishCall => ({
  topic,
  groupId: undefined,
  content: new TextEncoder().encode(text),
  extensions: [],
});

/** Publishes as a connection does, and records what the connection is notified of, in order. */
function submit(one: PublishCall, onOpening?: () => void): { readonly heard: unknown[]; outcome?: PublishOutcome } {
  const state: { readonly heard: unknown[]; outcome?: PublishOutcome } = { heard: [] };
  const placement: Placement = {
    onOpening: () => {
      state.heard.push("opening");
      onOpening?.();
    },
    onPlaced: () => void state.heard.push("placed"),
  };
  const onSettled: OnSettled = (outcome) => {
    state.outcome = outcome;
    state.heard.push(outcome.status);
  };
  engine.broker.submit({ ...one, placement }, onSettled);
  return state;
}

/** Kinds of entries, by block; empty blocks left out. */
function blocks(): string[][] {
  const { chain } = engine;
  return Array.from({ length: chain.head + 1 }, (_, number) => chain.find(number)?.entries ?? [])
    .filter(({ length }) => length > 0)
    .map((entries) => entries.map(({ kind }) => kind));
}

it.each([
  ["an event", call("a")],
  ["an event with a key", keyedCall("k")],
])("opens a topic and commits %s in one block; the next publish opens nothing", async (_, first) => {
  engine = await TestEngine.start();
  const { heard, outcome } = await settled(submit(first));
  expect(heard).toEqual(["opening", "placed", "SUCCESS"]);
  expect(outcome).toMatchObject({ status: "SUCCESS" });
  expect(blocks()).toEqual([["topic-opened", "events-committed"]]);
  const again = await settled(submit({ ...first, key: first.key && "other" }));
  expect(again.heard).toEqual(["placed", "SUCCESS"]);
});

it("opens a topic once for two first publishes, and commits them in the order of submission", async () => {
  engine = await TestEngine.start();
  const both = [submit(call("a", "1")), submit(call("a", "2"))];
  await engine.clock.settle();
  const ids = both.map(({ outcome }) => (outcome?.status === "SUCCESS" ? outcome.eventId.split("-")[1] : undefined));
  expect(ids).toEqual(["1", "2"]);
  expect(
    blocks()
      .flat()
      .filter((kind) => kind === "topic-opened"),
  ).toHaveLength(1);
});

it("opens no topic if the content is refused, the connection may open no more, or the publish has no placement", async () => {
  engine = await TestEngine.start();
  expect(() => submit({ ...call("a"), content: new Uint8Array(0) })).toThrow(BrokerError);
  const bounded = submit(call("a"), () => {
    throw new BrokerError("busy", { details: "too many" });
  });
  const plain: PublishOutcome[] = [];
  engine.broker.submit(call("a"), (outcome) => plain.push(outcome));
  await engine.clock.settle();
  expect(bounded.outcome).toMatchObject({ status: "REFUSED", error: { code: 200300 } });
  expect(plain).toMatchObject([{ status: "REFUSED", error: { code: 100101 } }]);
  expect(blocks()).toEqual([]);
});

it("asks for the right to open only if the topic does not exist", async () => {
  engine = await TestEngine.start({ policy: { ...allowAll, allows: (_, action) => action !== "open" } });
  engine.chain.open("there", `0x${"11".repeat(20)}`);
  await engine.clock.settle();
  expect((await settled(submit(call("there")))).outcome).toMatchObject({ status: "SUCCESS" });
  const refused = await settled(submit(call("new")));
  expect(refused).toMatchObject({ heard: ["REFUSED"], outcome: { error: { code: 100702 } } });
});

it("opens a known topic again after a reorg has removed it", async () => {
  engine = await TestEngine.start({ confirmations: 0 });
  for (const text of ["1", "2"]) await settled(submit(call("a", text)));
  engine.chain.cutBack(0);
  await engine.clock.advance(1_000);
  expect((await settled(submit(call("a")))).heard).toEqual(["opening", "placed", "SUCCESS"]);
});

it("does not reopen a topic that is closed", async () => {
  engine = await TestEngine.start();
  await settled(submit(call("a")));
  await engine.broker.close(call("a"));
  expect((await settled(submit(call("a")))).outcome).toMatchObject({ status: "REFUSED", error: { code: 100112 } });
});

it("commits a publish to a known topic within two blocks although a crowd of publishes opens topics", async () => {
  engine = await TestEngine.start();
  await settled(submit(call("known")));
  const before = engine.chain.head;
  const crowd = Array.from({ length: 10 * openingPublishesMax }, (_, index) => submit(call(`new/${index}`)));
  const known = submit(call("known"));
  await engine.clock.settle();
  const number = known.outcome?.status === "SUCCESS" ? Number(known.outcome.eventId.split("-")[2]) : Number.NaN;
  expect(number - before).toBeLessThanOrEqual(2);
  expect(crowd.every(({ outcome }) => outcome?.status === "SUCCESS")).toBe(true);
  const opened = blocks().map((kinds) => kinds.filter((kind) => kind === "topic-opened").length);
  expect(Math.max(...opened)).toBeLessThanOrEqual(openingPublishesMax);
});

/** An append that hangs until its deadline. */
const hang: Ledger["append"] = (_, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener("abort", () => reject(new BrokerError("transactionTimeout")));
  });

it("refuses a publish that waits too long to open its topic", async () => {
  engine = await TestEngine.start({ append: hang, limits: { transactionTimeoutMs: 1_000 } });
  const crowd = Array.from({ length: 3 * openingPublishesMax }, (_, index) => submit(call(`new/${index}`)));
  const same = [submit(call("same")), submit(call("same"))];
  await engine.clock.advance(2_100);
  const outcomes = [...crowd, ...same].map(({ outcome }) => outcome);
  const begun = outcomes.filter((outcome) => outcome?.status === "TIMEOUT");
  const refused = outcomes.filter((outcome) => outcome?.status === "REFUSED");
  expect([begun.length, begun.length + refused.length]).toEqual([openingPublishesMax, outcomes.length]);
  for (const outcome of refused) expect(outcome).toMatchObject({ error: { code: 200300 } });
});

async function settled<State>(state: State): Promise<State> {
  await engine.clock.settle();
  return state;
}
