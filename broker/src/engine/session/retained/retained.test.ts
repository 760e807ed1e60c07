import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SessionFilter } from "../../../domain/session-filter.ts";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { parseTopicName } from "../../../domain/topic-name.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { Attachment, PublishCall } from "../../broker.ts";
import { publish } from "../../testing/publish.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";

const topics = ["a", "a/b", "a/b/c", "ab", "$sys/a"];

let engine: TestEngine;
beforeEach(async () => {
  engine = await TestEngine.start();
  for (const topic of topics) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

async function attach(peer: RecordingPeer, windowMax = 100): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: false, will: undefined } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, windowMax, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

async function subscribe(
  attachment: Attachment,
  text: string,
  sessionFilter: Partial<SessionFilter> = {},
): Promise<void> {
  const defaults = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await attachment.subscribe([{ ...defaults, filter: parseTopicFilter(text), retained: "always", ...sessionFilter }]);
  await engine.clock.settle();
}

async function retain(topic: string, text: string, change: Partial<PublishCall> = {}): Promise<void> {
  const content = new TextEncoder().encode(text);
  const extensions = [["svc-retain", "true"]] as const;
  await publish(engine.broker, { topic, groupId: undefined, content, extensions, mayBeEmpty: true, ...change });
}

function seen(peer: RecordingPeer): string[] {
  return peer.deliveries.map(({ event, isRetained }) => {
    const text = new TextDecoder().decode(event.content);
    return `${isRetained === true ? "retained " : ""}${event.topic} ${text}`;
  });
}

const kept = { expiryMs: 60_000, isRegular: true };

describe("a retained event", () => {
  it.each([
    ["a", ["a 1"]],
    ["a/#", ["a 1", "a/b 2", "a/b/c 3"]],
    ["a/+", ["a/b 2"]],
    ["+/b/#", ["a/b 2", "a/b/c 3"]],
    ["#", ["a 1", "a/b 2", "a/b/c 3", "ab 4"]],
    ["$sys/#", ["$sys/a 5"]],
    ["b/#", []],
    ["a/b/c/d", []],
  ])("is delivered to a new subscription that matches: %s", async (filter, expected) => {
    for (const [topic, text] of [
      ["a", "1"],
      ["a/b", "2"],
      ["a/b/c", "3"],
      ["ab", "4"],
      ["$sys/a", "5"],
    ] as const) {
      await retain(topic, text);
    }
    await engine.publish("a", "not retained");
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), filter);
    expect(seen(peer)).toEqual(expected.map((text) => `retained ${text}`));
  });

  it("is the newest event with the mark, and is removed by a marked event with empty content", async () => {
    await retain("a", "old");
    await retain("a", "new");
    await retain("ab", "gone");
    await retain("ab", "");
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), "#");
    expect(seen(peer)).toEqual(["retained a new"]);
  });

  it("is neither replaced nor removed by an event without the mark", async () => {
    await engine.publish("a", "1");
    await retain("ab", "2");
    await retain("ab", "", { extensions: [] });
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), "#");
    expect(seen(peer)).toEqual(["retained ab 2"]);
  });

  it("is delivered once, and not as retained, to a session that has already subscribed", async () => {
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), "a");
    await retain("a", "1");
    await engine.clock.settle();
    expect(seen(peer)).toEqual(["a 1"]);
  });

  it("is read from the chain if the store has dropped its copy", async () => {
    const minuteMs = 60_000;
    await engine.stop();
    engine = await TestEngine.start({ retentionMs: 10 * minuteMs });
    for (const [index, topic] of topics.entries()) {
      await engine.broker.open({ topic, groupId: undefined });
      await retain(topic, String(index));
    }
    await engine.clock.advance(15 * minuteMs);
    engine.chain.sealEmpty();
    await engine.clock.advance(2 * minuteMs);
    for (const name of ["a", "ab"]) {
      const batch = await engine.store.findBatch(defaultGroupId, { topic: parseTopicName(name), sequence: 1 });
      expect(batch?.dropped).toBeDefined();
    }
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), "#");
    expect(seen(peer)).toEqual(["retained a 0", "retained a/b 1", "retained a/b/c 2", "retained ab 3"]);
  });

  it("is no longer searched for once the client has disconnected", async () => {
    for (let index = 0; index < 200; index += 1) {
      const topic = `many/${index}`;
      await engine.broker.open({ topic, groupId: undefined });
      await retain(topic, "1");
    }
    const attachment = await attach(new RecordingPeer());
    const listRetained = engine.store.listRetained.bind(engine.store);
    let reads = 0;
    engine.store.listRetained = async (...call) => {
      reads += 1;
      attachment.detach(kept);
      return listRetained(...call);
    };
    await subscribe(attachment, "+/none");
    expect(reads).toBe(1);
  });

  it.each([
    ["always", ["retained a 1", "retained a 1"]],
    ["if-new", ["retained a 1"]],
    [undefined, []],
  ] as const)("follows the retained option when a filter is subscribed twice: %s", async (retained, expected) => {
    await retain("a", "1");
    const peer = new RecordingPeer();
    const attachment = await attach(peer);
    await subscribe(attachment, "a", { retained });
    await subscribe(attachment, "a", { retained });
    expect(seen(peer)).toEqual(expected);
  });

  it("has the identifier and the QoS of the subscription that asked for it, or the publish's QoS if that is lower", async () => {
    await retain("a", "1", {
      extensions: [
        ["svc-qos", "2"],
        ["svc-retain", "true"],
      ],
    });
    const peer = new RecordingPeer();
    const attachment = await attach(peer);
    await subscribe(attachment, "#", { retained: undefined, identifier: 1, qos: 2 });
    await subscribe(attachment, "a", { identifier: 2, qos: 1 });
    expect(peer.deliveries).toMatchObject([{ qos: 1, filters: [{ identifier: 2 }] }]);
  });

  it("comes before events that are published later, even with a window of 1", async () => {
    for (const topic of ["a", "a/b", "a/b/c"]) await retain(topic, "1");
    const peer = new RecordingPeer();
    const attachment = await attach(peer, 1);
    const sessionFilter = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    await attachment.subscribe([{ ...sessionFilter, filter: parseTopicFilter("#"), retained: "always" }]);
    await engine.publish("a", "2");
    for (let given = 0; given < 4; given += 1) {
      await engine.clock.settle();
      expect(peer.deliveries).toHaveLength(given + 1);
      attachment.session.acknowledge(peer.deliveries[given]?.ticket ?? 0);
    }
    expect(seen(peer)).toEqual(["retained a 1", "retained a/b 1", "retained a/b/c 1", "a 2"]);
  });

  it("is delivered again, under its ticket, to the next connection of a session that did not acknowledge it", async () => {
    for (const topic of ["a", "a/b", "ab"]) await retain(topic, "1");
    const first = new RecordingPeer();
    const attachment = await attach(first, 2);
    await subscribe(attachment, "#");
    attachment.session.acknowledge(first.deliveries[0]?.ticket ?? 0);
    await engine.clock.settle();
    expect(seen(first)).toEqual(["retained a 1", "retained a/b 1", "retained ab 1"]);
    attachment.session.receive(first.deliveries[2]?.ticket ?? 0);
    attachment.detach(kept);
    await engine.publish("a", "2");
    const second = new RecordingPeer();
    await attach(second);
    await engine.clock.settle();
    expect(seen(second)).toEqual(["retained a/b 1", "a 2"]);
    expect(second.deliveries[0]).toMatchObject({ isRepeated: true, ticket: first.deliveries[1]?.ticket });
    expect(second.released).toEqual([first.deliveries[2]?.ticket]);
  });

  it("is delivered to the next connection if it did not fit into the window of the earlier one", async () => {
    for (const topic of ["a", "a/b", "ab"]) await retain(topic, "1");
    const first = new RecordingPeer();
    const attachment = await attach(first, 1);
    await subscribe(attachment, "#");
    attachment.detach(kept);
    const second = new RecordingPeer();
    await attach(second);
    await engine.clock.settle();
    expect(seen(second)).toEqual(["retained a 1", "retained a/b 1", "retained ab 1"]);
  });

  it("is not delivered once the filter is removed", async () => {
    for (const topic of ["a", "a/b", "ab"]) await retain(topic, "1");
    const peer = new RecordingPeer();
    const attachment = await attach(peer, 1);
    await subscribe(attachment, "#");
    await attachment.unsubscribe([parseTopicFilter("#")]);
    attachment.session.acknowledge(peer.deliveries[0]?.ticket ?? 0);
    await engine.publish("a", "2");
    expect(seen(peer)).toEqual(["retained a 1"]);
  });

  it("is delivered for each of 200 topics, which are read in pages", async () => {
    const names = Array.from({ length: 200 }, (_, index) => `many/${String(index).padStart(3, "0")}`);
    for (const topic of names) await engine.broker.open({ topic, groupId: undefined });
    await Promise.all(names.map((topic) => retain(topic, "1")));
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), "many/#", { qos: 0 });
    expect(seen(peer)).toEqual(names.map((name) => `retained ${name} 1`));
  });

  it("is not delivered to the session that published it if its filter has isNoLocal", async () => {
    const peer = new RecordingPeer();
    const attachment = await attach(peer);
    await subscribe(attachment, "a", { isNoLocal: true, retained: undefined });
    const origin = attachment.session.originFor("a") ?? "";
    await retain("a", "1", {
      extensions: [
        ["svc-retain", "true"],
        ["svc-origin", origin],
      ],
    });
    await subscribe(attachment, "a", { isNoLocal: true });
    expect(seen(peer)).toEqual([]);
  });

  it("is the newest one on the chain after a rollback", async () => {
    await engine.stop();
    engine = await TestEngine.start({ confirmations: 0 });
    await engine.broker.open({ topic: "a", groupId: undefined });
    await retain("a", "1");
    await retain("a", "2");
    engine.chain.cutBack(engine.chain.head - 1);
    engine.chain.sealEmpty();
    await engine.clock.settle();
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), "a");
    expect(seen(peer)).toEqual(["retained a 1"]);
  });

  it("is delivered once if a rollback replaces it before it was sent", async () => {
    await engine.stop();
    engine = await TestEngine.start({ confirmations: 0 });
    for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
    await retain("a", "1");
    await retain("b", "old");
    const peer = new RecordingPeer();
    const attachment = await attach(peer, 1);
    await subscribe(attachment, "#");
    engine.chain.cutBack(engine.chain.head - 1);
    await retain("b", "new");
    await engine.clock.settle();
    for (let given = 0; given < peer.deliveries.length; given += 1) {
      attachment.session.acknowledge(peer.deliveries[given]?.ticket ?? 0);
      await engine.clock.settle();
    }
    expect(seen(peer)).toEqual(["retained a 1", "b new"]);
  });

  it("is the earlier one if a rollback removes the newest one before it was sent", async () => {
    await engine.stop();
    engine = await TestEngine.start({ confirmations: 0 });
    for (const topic of ["a", "b", "c"]) await engine.broker.open({ topic, groupId: undefined });
    for (const [topic, text] of [
      ["a", "1"],
      ["b", "earlier"],
      ["c", "1"],
      ["b", "newest"],
    ] as const)
      await retain(topic, text);
    const peer = new RecordingPeer();
    const attachment = await attach(peer, 1);
    await subscribe(attachment, "#");
    engine.chain.cutBack(engine.chain.head - 1);
    engine.chain.sealEmpty();
    await engine.clock.settle();
    for (let given = 0; given < peer.deliveries.length; given += 1) {
      attachment.session.acknowledge(peer.deliveries[given]?.ticket ?? 0);
      await engine.clock.settle();
    }
    expect(seen(peer)).toEqual(["retained a 1", "retained b earlier", "retained c 1"]);
  });

  it("survives a restart of the broker", async () => {
    await retain("a", "1");
    await engine.rebuild();
    await engine.broker.start();
    const peer = new RecordingPeer();
    await subscribe(await attach(peer), "a");
    expect(seen(peer)).toEqual(["retained a 1"]);
  });
});
