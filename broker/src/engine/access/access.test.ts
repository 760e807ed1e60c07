import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Broker, TransactionOutcome } from "../broker.ts";
import { type CalledBroker, testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { type Action, allowAll, type Policy, type Scope } from "./policy.ts";

type Asked = readonly [Action, Scope];

/** The rights that the broker asked the policy about. */
let asked: Asked[] = [];
let isDenied: (action: Action, scope: Scope) => boolean = () => false;
let mayReceive: Policy["mayReceive"] = () => true;
const policy: Policy = {
  ...allowAll,
  allows: (caller, action, scope) => {
    expect(caller).toBe(testCaller);
    asked.push([action, scope]);
    return !isDenied(action, scope);
  },
  mayReceive: (principal, scope) => mayReceive(principal, scope),
};

let engine: TestEngine;
let eventId = "";
let subscriptionId = "";
beforeEach(async () => {
  isDenied = () => false;
  mayReceive = () => true;
  engine = await TestEngine.start({ policy });
  await engine.broker.open({ topic: "a", groupId: undefined });
  eventId = await engine.publish("a", "one");
  subscriptionId = await engine.subscribe("a");
});
afterEach(() => engine.stop());

/** The head of the index and the subscriptions: everything that a call can change. */
async function snapshot() {
  const head = await engine.store.findHead("1" as never); // The group of the engine under test.
  return { head, subscriptions: await engine.store.listSubscriptions() };
}

interface Row {
  readonly asks: readonly [Action, groupId: string | undefined, topic: string | undefined];
  /** Further rights that allow the call. */
  readonly others?: readonly Action[];
  readonly run: (broker: CalledBroker) => unknown;
  /** The same call with an invalid input: the broker must check the right first. */
  readonly runWrong?: (broker: CalledBroker) => unknown;
}

const content = new Uint8Array([1]);
const groupId = undefined;
const blank = { topic: "", groupId: "\n" };
const call = { url: "http://receiver/", format: "RESTful", offset: undefined, secret: undefined } as const;
const ignore = (): void => {};
const tailed = { after: undefined, lastEventId: undefined, onConnected: ignore };

/** Every call of the broker that needs a right, except authorize and attach. The type demands a row for each new call. */
const rows: {
  readonly [Name in Exclude<
    keyof Broker,
    | "authenticate"
    | "refuseLogIn"
    | "mayConnect"
    | "admit"
    | "rightsOf"
    | "authorize"
    | "attach"
    | "whenRoom"
    | "release"
  >]: Row;
} = {
  open: { asks: ["open", "1", "b"], run: (b) => b.open({ topic: "b", groupId }), runWrong: (b) => b.open(blank) },
  close: { asks: ["close", "1", "a"], run: (b) => b.close({ topic: "a", groupId }), runWrong: (b) => b.close(blank) },
  exist: {
    asks: ["read", "1", "a"],
    others: ["publish", "open"],
    run: (b) => b.exist({ topic: "a", groupId }),
    runWrong: (b) => b.exist(blank),
  },
  state: { asks: ["read", "1", "a"], run: (b) => b.state({ topic: "a", groupId }), runWrong: (b) => b.state(blank) },
  list: {
    asks: ["read", "1", "#"],
    run: (b) => b.list({ pageIndex: 0, pageSize: 1, groupId }),
    runWrong: (b) => b.list({ pageIndex: -1, pageSize: 1, groupId }),
  },
  submit: {
    asks: ["publish", "1", "a"],
    run: (b) => b.submit({ topic: "a", groupId, content, extensions: [] }, ignore),
    runWrong: (b) => b.submit({ ...blank, content, extensions: [] }, ignore),
  },
  submitAll: {
    asks: ["publish", "1", "a"],
    run: (b) => b.submitAll([{ topic: "a", groupId, content, extensions: [] }], ignore),
    runWrong: (b) => b.submitAll([{ ...blank, content, extensions: [] }], ignore),
  },
  pass: {
    asks: ["publish", "1", "a"],
    run: (b) => b.pass({ topic: "a", groupId, content, extensions: [] }),
    runWrong: (b) => b.pass({ ...blank, content, extensions: [] }),
  },
  subscribe: {
    asks: ["subscribe", "1", "a/#"],
    run: (b) => b.subscribe({ ...call, topic: "a/#", groupId, subscriptionId: undefined }),
    runWrong: (b) => b.subscribe({ ...call, ...blank, subscriptionId: "x" }),
  },
  tail: {
    asks: ["subscribe", "1", "a/#"],
    run: (b) => b.tail({ ...tailed, filters: ["a/#"], groupId }, new RecordingPeer()),
    runWrong: (b) => b.tail({ ...tailed, filters: [""], groupId: "\n" }, new RecordingPeer()),
  },
  unSubscribe: {
    asks: ["unsubscribe", undefined, undefined],
    run: (b) => b.unSubscribe({ subscriptionId }),
    runWrong: (b) => b.unSubscribe({ subscriptionId: "" }),
  },
  getEvent: {
    asks: ["read", "1", undefined],
    run: (b) => b.getEvent({ eventId, groupId }),
    runWrong: (b) => b.getEvent({ eventId: "", groupId: "\n" }),
  },
  getProof: {
    asks: ["read", "1", undefined],
    run: (b) => b.getProof({ eventId, groupId }),
    runWrong: (b) => b.getProof({ eventId: "", groupId: "\n" }),
  },
  listSubscriptions: { asks: ["administer", undefined, undefined], run: (b) => b.listSubscriptions() },
  listSkippedEntries: {
    asks: ["administer", "1", undefined],
    run: (b) => b.listSkippedEntries({ groupId, limit: undefined }),
    runWrong: (b) => b.listSkippedEntries({ groupId, limit: "x" }),
  },
  health: { asks: ["health", undefined, undefined], run: (b) => b.health() },
  node: { asks: ["health", undefined, undefined], run: (b) => b.node() },
};

const denied = expect.objectContaining({ code: 100_702, kind: "forbidden" });

/** The error of a call, whether it throws or rejects. */
async function failureOf(run: () => unknown): Promise<unknown> {
  try {
    await run();
    return "no failure";
  } catch (error) {
    return error;
  }
}

describe("without the right", () => {
  beforeEach(() => {
    asked = [];
    isDenied = () => true;
  });

  it.each(Object.entries(rows))(
    "%s is refused with 100702, asks the policy only about the rights that allow the call, and changes nothing",
    async (_, row) => {
      const [action, group, topic] = row.asks;
      const before = await snapshot();
      expect(await failureOf(() => row.run(engine.broker))).toEqual(denied);
      await engine.clock.advance(1_000);
      const scope = { groupId: group, topic };
      const { others = [] } = row;
      const tried = others.length === 0 ? [] : [action, ...others];
      expect(asked).toEqual([...tried, action].map((one) => [one, scope]));
      expect(await snapshot()).toEqual(before);
    },
  );

  const wrong = Object.entries(rows).flatMap(([name, { runWrong }]) =>
    runWrong === undefined ? [] : ([[name, runWrong]] as const),
  );
  it.each(wrong)("%s is refused before its input is read", async (_, runWrong) => {
    expect(await failureOf(() => runWrong(engine.broker))).toEqual(denied);
  });
});

it("authorize throws without the right, and returns with the right", () => {
  isDenied = (action) => action === "chain";
  expect(() => engine.broker.authorize("chain")).toThrow("not allowed: chain");
  engine.broker.authorize("administer");
});

it.each(["getEvent", "getProof"] as const)(
  "%s answers 100303 for an event that the caller may not read, as for one that does not exist",
  async (name) => {
    isDenied = (action, { topic }) => action === "read" && topic === "a";
    const guessed = `00000000${eventId.slice(8)}`;
    for (const one of [eventId, guessed]) {
      const missing = { code: 100_303, message: `eventId does not exist: "${one}"` };
      expect(await failureOf(() => engine.broker[name]({ eventId: one, groupId }))).toMatchObject(missing);
    }
  },
);

it.each(["b", "$b"])(
  "the broker refuses getProof to a caller who may not read the topic %j of another event in the block",
  async (other) => {
    await engine.broker.open({ topic: other, groupId });
    const calls = ["a", other].map((topic) => ({ topic, groupId, content, extensions: [] }));
    const settled: TransactionOutcome[] = [];
    engine.broker.submitAll(calls, (outcome) => settled.push(outcome));
    await engine.clock.advance(1_000);
    const proven = settled[0]?.status === "SUCCESS" ? (settled[0].results[0]?.eventId ?? "") : "";
    isDenied = (_, { topic }) => topic === other || (topic === "#" && other === "b");
    expect(await failureOf(() => engine.broker.getEvent({ eventId: proven, groupId }))).toBe("no failure");
    expect(await failureOf(() => engine.broker.getProof({ eventId: proven, groupId }))).toEqual(denied);
    isDenied = () => false;
    const failure = await failureOf(() => engine.broker.getProof({ eventId: proven, groupId }));
    expect(failure).toMatchObject({ code: 200_206 }); // A chain in memory has no proofs.
  },
);

it("the broker refuses getProof to a caller without the right to read #, even if the caller may read the only topic of the block", async () => {
  isDenied = (_, { topic }) => topic === "#";
  expect(await failureOf(() => engine.broker.getProof({ eventId, groupId }))).toEqual(denied);
});

it.each(["1", "2"])(
  "health of the group %s is refused without a right in it, whether the group exists or not",
  async (one) => {
    isDenied = (action) => action !== "health";
    expect(await failureOf(() => engine.broker.health(one))).toEqual(denied);
    expect(engine.broker.health()).toHaveLength(1);
  },
);

it.each(["inspect", "read", "publish", "subscribe"])(
  "health of a group is answered to a caller with the right to %s in it",
  async (right) => {
    isDenied = (action, scope) => action !== "health" && (action !== right || scope.groupId === "3");
    expect(engine.broker.health("1")).toMatchObject([{ groupId: "1", ready: true }]);
    expect(await failureOf(() => engine.broker.health("2"))).toMatchObject({ code: 200_211 });
    expect(await failureOf(() => engine.broker.health("3"))).toEqual(denied);
  },
);

it("list leaves out topics beginning with $ that the caller may not read", async () => {
  for (const topic of ["$own/a", "$other/a"]) await engine.broker.open({ topic, groupId });
  isDenied = (_, { topic }) => topic?.startsWith("$other") === true;
  const { topics } = await engine.broker.list({ pageIndex: 0, pageSize: 10, groupId });
  expect(topics.map(({ name }) => name).toSorted()).toEqual(["$own/a", "a"]);
});

it("a subscriber gets no event, live or stored, of a topic that it may not receive", async () => {
  mayReceive = (principal, scope) => {
    expect([principal, scope.groupId]).toEqual(["anonymous", "1"]);
    return scope.topic !== "a";
  };
  await engine.broker.open({ topic: "b", groupId });
  await engine.publish("b", "stored");
  const id = await engine.subscribe("#", { offset: "OFFSET_FIRST", url: "http://all/" });
  await engine.clock.advance(1_000);
  await engine.publish("a", "live");
  await engine.publish("b", "live");
  await engine.clock.advance(1_000);
  const received = engine.sink.attempts.filter(({ subscription }) => subscription.id === id);
  expect(received.map(({ event }) => event.topic)).toEqual(["b", "b"]);
});
