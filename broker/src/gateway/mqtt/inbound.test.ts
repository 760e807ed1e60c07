import { setImmediate } from "node:timers/promises";
import { BrokerError } from "@stele/wire";
import { beforeEach, expect, it } from "vitest";
import { isTopicName } from "../../domain/topic-name.ts";
import type { ConnectedSession, OnSettled, PublishCall } from "../../engine/broker.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { LazyMap } from "../../lib/lazy-collections.ts";
import type { PublishPacket } from "./codec/packet.ts";
import { type Answer, Inbound, type InboundParts } from "./inbound.ts";

/** The callbacks of all submitted publishes, by content, in the order of submission. */
const submitted = new Map<string, OnSettled>();
/** The calls of these publishes. */
const calls = new Map<string, PublishCall>();
/** What the connections answered. `unknown`, with the code of an error if there is one, means that the connection ended without an answer. */
let answers: (Answer | "unknown" | `unknown ${number}`)[] = [];
beforeEach(() => {
  submitted.clear();
  calls.clear();
  answers = [];
});

/**
 * Gives each publish except `slow` its place at once, as the broker does for a known topic. It does so for a repeat too: the broker finds out only later that
 * an earlier connection used the key.
 */
function submit(_: unknown, call: PublishCall, onSettled: OnSettled): void {
  const text = new TextDecoder().decode(call.content);
  submitted.set(text, onSettled);
  calls.set(text, call);
  if (text !== "slow") call.placement?.onPlaced();
}

/** A connection of the stored session at this node. */
function connect(
  session: ConnectedSession,
  broker: Partial<InboundParts["broker"]> = {},
  own: Partial<InboundParts> = {},
): Inbound {
  return new Inbound({
    broker: { submit, whenRoom: () => true, submitAll: unused, release: unused, pass: unused, ...broker },
    knowsReceiveMax: true,
    caller: undefined as never, // Only the broker reads it.
    opener: { isAutomatic: false } as never, // Not used for topics that are open.
    session,
    groupId: undefined,
    settings: { extensionPrefix: "svc-", receiveMax: 10, topicAliasMax: 0, qos0: "commit" },
    onAnswer: (answer) => answers.push(answer),
    onReleased: unused,
    onUnknown: (error) => answers.push(error === undefined ? "unknown" : `unknown ${error.code}`),
    onLost: unused,
    ...own,
  });
}

function createSession(): ConnectedSession {
  const keys = { id: "s", epoch: 1 };
  return { isStored: true, inbound: new LazyMap(), keys, originFor: () => undefined } as never; // The rest is not used.
}

function unused(): never {
  throw new Error("not used");
}

const packet = (packetId: number, text: string): PublishPacket =>
  ({
    topic: "a",
    qos: 2,
    packetId,
    isDuplicate: true,
    isRetained: false,
    payload: new TextEncoder().encode(text),
    properties: {},
  }) as never; // The other fields are empty.

it("until the outcome of a repeated publish is known, accepts no later packet, even if an earlier connection submitted the publish", async () => {
  const session = createSession();
  void connect(session).take(packet(1, "one"));
  const second = connect(session);
  const taken = second.take(packet(1, "one"));
  let isTaken = false;
  void taken?.then(() => (isTaken = true));
  await Promise.resolve();
  expect([taken, isTaken]).toEqual([expect.any(Promise), false]);
  submitted.get("one")?.({ topic: "a", eventId: "", status: "SUCCESS" });
  await taken;
  expect([...submitted.keys()]).toEqual(["one"]);
});

it.each(["storeUnreachable", "chainUnreachable", "busy"] as const)(
  "ends the connection without an answer if it cannot find out whether a repeat was published: %s",
  (name) => {
    const inbound = connect(createSession());
    void inbound.take(packet(1, "one"));
    submitted.get("one")?.({ status: "REFUSED", error: new BrokerError(name) });
    expect(answers).toEqual(["unknown"]);
  },
);

it.each([1, 2] as const)(
  "ends the connection without an answer if this node cannot reach the store, so that the client repeats its publish of QoS %s",
  (qos) => {
    const inbound = connect(createSession());
    for (const [id, text] of ["one", "two"].entries())
      void inbound.take({ ...packet(id + 1, text), qos, isDuplicate: false });
    submitted.get("one")?.({ status: "REFUSED", error: new BrokerError("storeUnreachable") });
    inbound.close();
    submitted.get("two")?.({ status: "REFUSED", error: new BrokerError("storeUnreachable") });
    expect(answers).toEqual(["unknown 200207"]);
  },
);

it("tells the broker which publishes are repeats, so that a quota does not refuse a publish that is already on the chain", () => {
  const inbound = connect(createSession());
  void inbound.take({ ...packet(1, "new"), isDuplicate: false });
  void inbound.take(packet(2, "repeat"));
  expect([...calls.values()].map(({ isRepeat }) => isRepeat)).toEqual([false, true]);
});

it("answers a repeat with the error if the broker refuses it because its topic is closed", () => {
  const inbound = connect(createSession());
  void inbound.take(packet(1, "one"));
  submitted.get("one")?.({ status: "REFUSED", error: new BrokerError("topicClosed") });
  expect(answers).toMatchObject([{ packetId: 1, qos: 2, error: { code: 100112 } }]);
});

it("submits no publish while the client does not know that an earlier one failed, and none if the connection ends meanwhile", async () => {
  const inbound = connect(createSession());
  for (const [id, text] of ["one", "two"].entries()) void inbound.take({ ...packet(id + 1, text), isDuplicate: false });
  submitted.get("two")?.({ status: "REFUSED", error: new BrokerError("topicClosed") });
  const three = inbound.take({ ...packet(3, "three"), isDuplicate: false });
  expect([...submitted.keys()]).toEqual(["one", "two"]);
  expect(inbound.waitingBytes).toBeGreaterThan(0);
  submitted.get("one")?.({ topic: "a", eventId: "", status: "SUCCESS" });
  await three;
  expect([...submitted.keys()]).toEqual(["one", "two", "three"]);
  void inbound.take({ ...packet(4, "four"), isDuplicate: false });
  submitted.get("four")?.({ status: "REFUSED", error: new BrokerError("topicClosed") });
  const five = inbound.take({ ...packet(5, "five"), isDuplicate: false });
  inbound.close();
  await five;
  expect([...submitted.keys()]).not.toContain("five");
});

it("if a publish waits until the client knows of an earlier failure, accepts the next packet only once that publish has its place in the order", async () => {
  const inbound = connect(createSession());
  for (const [id, text] of ["one", "two"].entries()) void inbound.take({ ...packet(id + 1, text), isDuplicate: false });
  submitted.get("two")?.({ status: "REFUSED", error: new BrokerError("topicClosed") });
  let isTaken = false;
  const slow = inbound.take({ ...packet(3, "slow"), isDuplicate: false })?.then(() => (isTaken = true));
  submitted.get("one")?.({ topic: "a", eventId: "", status: "SUCCESS" });
  await setImmediate();
  expect([submitted.has("slow"), isTaken]).toEqual([true, false]);
  submitted.get("slow")?.({ topic: "a", eventId: "", status: "SUCCESS" });
  await slow;
});

it("ends the connection if the store cannot free the key of a released publish: its client waits for the PUBCOMP", async () => {
  const inbound = connect(createSession(), {
    release: () => Promise.reject(new BrokerError("storeUnreachable")),
  });
  void inbound.release(1);
  await setImmediate();
  expect(answers).toEqual(["unknown 200207"]);
});

it("publishes a new QoS 2 message under the packet identifier of a refused publish", () => {
  const inbound = connect(createSession());
  void inbound.take({ ...packet(1, "one"), isDuplicate: false });
  submitted.get("one")?.({ status: "REFUSED", error: new BrokerError("topicClosed") });
  void inbound.take({ ...packet(1, "two"), isDuplicate: false });
  expect([...submitted.keys()]).toEqual(["one", "two"]);
});

it("counts publishes of QoS 1 against Receive Maximum until they are answered", () => {
  const inbound = connect(createSession());
  const take = (id: number): unknown => inbound.take({ ...packet(id, `${id}`), qos: 1, isDuplicate: false });
  for (let id = 1; id <= 10; id += 1) take(id);
  submitted.get("1")?.({ topic: "a", eventId: "", status: "SUCCESS" });
  take(11);
  expect(() => take(12)).toThrow("more than 10 publishes are under way");
});

it.each([1, 2] as const)(
  "makes an MQTT 3.1.1 client wait until fewer of its publishes of QoS %s are unanswered",
  async (qos) => {
    const inbound = connect(createSession(), {}, { knowsReceiveMax: false }); // It does not know Receive Maximum.
    const take = (id: number) => inbound.take({ ...packet(id, `${id}`), qos, isDuplicate: false });
    for (let id = 1; id <= 9; id += 1) expect(take(id)).toBeUndefined();
    let isTaken = false;
    const tenth = take(10)?.then(() => (isTaken = true));
    await setImmediate();
    expect([submitted.has("10"), isTaken]).toEqual([true, false]);
    submitted.get("1")?.({ topic: "a", eventId: "", status: "SUCCESS" });
    await tenth;
    expect(isTaken).toBe(true);
    const eleventh = take(11);
    inbound.close();
    await eleventh;
    expect(inbound.unreleasedBytes).toBe(qos === 2 ? 11 * 256 : 0);
  },
);

it("counts a live publish as held until its subscribers have it, and as lost if that fails later", async () => {
  const passing = createDeferred<void>();
  const lost: unknown[] = [];
  const settings = { extensionPrefix: "svc-", receiveMax: 10, topicAliasMax: 0, qos0: "live" } as const;
  const onLost = (topic: string, { code }: BrokerError): void => void lost.push([topic, code]);
  const inbound = connect(createSession(), { pass: () => passing.promise }, { settings, onLost });
  const taken = inbound.take({ ...packet(0, "x".repeat(1_000)), qos: 0 });
  expect(inbound.waitingBytes).toBeGreaterThan(1_000);
  passing.reject(new BrokerError("busy"));
  await taken;
  expect([inbound.waitingBytes, lost]).toEqual([0, [["a", 200300]]]);
});

function refuseName(_: unknown, { topic }: PublishCall, onSettled: OnSettled): void {
  onSettled({ status: "REFUSED", error: isTopicName(topic) ? undefined : new BrokerError("topicInvalidCharacter") });
}

it.each([
  ["a+b", "a+b"],
  ["t".repeat(60_000), "t".repeat(257)],
])(
  "refuses a publish whose alias stands for a refused topic name, and reports the first 257 characters of that name",
  (name, expected) => {
    const lost: string[] = [];
    const settings = { extensionPrefix: "svc-", receiveMax: 10, topicAliasMax: 1, qos0: "commit" } as const;
    const onLost = (topic: string, { code }: BrokerError): void => void lost.push(`${code} ${topic}`);
    const inbound = connect(createSession(), { submit: refuseName }, { settings, onLost });
    const properties = { topicAlias: 1 } as never; // The other properties are empty.
    for (const topic of [name, ""]) void inbound.take({ ...packet(0, "x"), qos: 0, topic, properties });
    expect(lost).toEqual([`100106 ${name}`, `100106 ${expected}`]);
  },
);
