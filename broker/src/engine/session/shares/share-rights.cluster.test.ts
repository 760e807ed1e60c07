import { afterEach, beforeEach, expect, it } from "vitest";
import type { AccessRule } from "../../../domain/access-rule.ts";
import type { QoS, SessionFilter } from "../../../domain/session-filter.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { MemoryApiKeys } from "../../../store/memory/memory-api-keys.ts";
import type { Caller } from "../../access/caller.ts";
import { formatKeyCredential } from "../../access/credential.ts";
import type { Attachment, AttachRequest } from "../../broker.ts";
import { testCaller } from "../../testing/as-caller.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestCluster } from "../../testing/test-cluster.ts";
import { secret, sha256 } from "../../testing/key-secret.ts";
import { allOfA } from "../../testing/roles-of-a.ts";

const notSecret: readonly AccessRule[] = [{ effect: "deny", actions: ["subscribe"], filter: "a/secret" }];
const roles = new Map([
  ["all of a", [allOfA]],
  ["not secret", notSecret],
]);
const filter = parseTopicFilter("$share/s/a/#");
const keptMs = 3_600_000;

let cluster: TestCluster;
let keys: MemoryApiKeys;
let keyCount = 0;

beforeEach(async () => {
  keys = new MemoryApiKeys();
  cluster = await TestCluster.start(2, { keys: { apiKeys: keys, roles, sha256 } });
  const caller = await addKey("publisher", "all of a");
  for (const topic of ["a/secret", "a/open"]) {
    await cluster.run(cluster.node(0).calls.open(caller, { topic, groupId: undefined }));
  }
});
afterEach(() => cluster.stopAll());

/** Adds an API key of a principal. All nodes know the key when this resolves. */
async function addKey(principal: string, role: string): Promise<Caller> {
  const id = String((keyCount += 1)).padStart(16, "0");
  const times = { createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  const key = { id, digest: sha256(secret), principal, tenant: undefined, roles: [role], ...times };
  expect(await keys.insertApiKey(key, 100)).toBe(true);
  await cluster.clock.advance(1_000);
  return {
    ...testCaller,
    principal: await cluster.node(0).calls.authenticate(formatKeyCredential({ id, secret }), testCaller),
  };
}

/** Removes a principal's right to one topic that its filter matches. Returns a function that restores the right. */
async function narrow(principal: string): Promise<() => Promise<void>> {
  const added = await addKey(principal, "not secret");
  const { keyId = "" } = added.principal as { readonly keyId?: string };
  return async () => {
    await keys.revokeApiKey(keyId, cluster.clock.now());
    await cluster.clock.advance(1_000);
  };
}

/** A connection of a principal that may join the share. */
class Member {
  readonly peer = new RecordingPeer();
  readonly #attachment: Attachment;

  private constructor(peer: RecordingPeer, attachment: Attachment) {
    this.peer = peer;
    this.#attachment = attachment;
  }

  static async attach(caller: Caller, node: number, { hasRoom = true, windowMax = 10 } = {}): Promise<Member> {
    const peer = new RecordingPeer();
    peer.hasRoom = hasRoom;
    const request: AttachRequest = {
      groupId: undefined,
      protocol: "MQTT",
      key: "device",
      isClean: false,
      will: undefined,
      windowMax,
      expiryMs: keptMs,
      onConnected: () => {},
    };
    return new Member(peer, await cluster.run(cluster.node(node).calls.attach(caller, request, peer)));
  }

  async join(qos: QoS = 1): Promise<this> {
    expect(await this.subscribe(qos)).toEqual([true]);
    return this;
  }

  subscribe(qos: QoS = 1): Promise<readonly unknown[]> {
    const sessionFilter: SessionFilter = {
      filter,
      qos,
      isNoLocal: false,
      isRetainAsPublished: false,
      identifier: undefined,
    };
    return cluster.run(this.#attachment.subscribe([sessionFilter]));
  }

  get texts(): readonly string[] {
    return this.peer.deliveries.map(({ event }) => new TextDecoder().decode(event.content));
  }

  async acknowledge(text: string): Promise<void> {
    const ticket = this.peer.deliveries[this.texts.indexOf(text)]?.ticket;
    if (ticket === undefined) throw new Error(`${text} did not come`);
    this.#attachment.session.acknowledge(ticket);
    await cluster.clock.advance(1_000);
  }

  async makeRoom(): Promise<void> {
    this.peer.hasRoom = true;
    this.#attachment.session.wake();
    await cluster.clock.advance(1_000);
  }

  async leave(): Promise<void> {
    this.#attachment.detach({ expiryMs: keptMs, isRegular: true });
    await cluster.clock.advance(1_000);
  }
}

async function publish(topic: string, text: string, qos: QoS = 1): Promise<void> {
  const { calls } = cluster.node(0);
  const caller = await publisher();
  const extensions = [["svc-qos", String(qos)] as const];
  calls.submit(caller, { topic, groupId: undefined, content: new TextEncoder().encode(text), extensions }, () => {});
  await cluster.clock.advance(1_000);
}

async function publisher(): Promise<Caller> {
  const id = [...(await keys.listApiKeys(0))].find(({ principal }) => principal === "publisher")?.id ?? "";
  return {
    ...testCaller,
    principal: await cluster.node(0).calls.authenticate(formatKeyCredential({ id, secret }), testCaller),
  };
}

const warnings = (node: number): readonly (string | undefined)[] =>
  cluster
    .node(node)
    .broker.groupHealth()
    .map(({ warning }) => warning);

it("keeps an event that no session of a share at this node may receive, for a session at another node whose window is full", async () => {
  const narrowed = await (await Member.attach(await addKey("one", "all of a"), 0)).join();
  await narrow("one");
  const entitled = await (await Member.attach(await addKey("two", "all of a"), 1, { windowMax: 1 })).join();
  await publish("a/secret", "1");
  await publish("a/secret", "2");
  await publish("a/open", "3");
  for (const text of ["1", "2"]) await entitled.acknowledge(text);
  expect(entitled.texts).toEqual(["1", "2", "3"]);
  expect(narrowed.texts).toEqual([]);
});

it("keeps an event for a disconnected member when no connected member may receive it", async () => {
  const away = await (await Member.attach(await addKey("two", "all of a"), 0)).join();
  await away.leave();
  await (await Member.attach(await addKey("one", "all of a"), 0)).join();
  await narrow("one");
  await publish("a/secret", "1");
  await publish("a/open", "2");
  const again = await Member.attach(await addKey("two", "all of a"), 1);
  await cluster.clock.advance(2_000);
  expect(again.texts).toEqual(["1", "2"]);
});

it("delivers waiting events to a member once its rights cover its filter again, and health warns until then", async () => {
  const member = await (await Member.attach(await addKey("one", "all of a"), 0)).join();
  const widen = await narrow("one");
  expect(warnings(0)).toEqual([undefined]);
  await publish("a/open", "1");
  await publish("a/secret", "2");
  expect(member.texts).toEqual([]);
  expect(warnings(0)).toEqual([expect.stringMatching(/^1 connected .* rights/)]);
  await widen();
  expect(member.texts).toEqual(["1", "2"]);
  expect(warnings(0)).toEqual([undefined]);
});

it("after a member's rights shrink, delivers its unacknowledged events to a member that still has all rights", async () => {
  const first = await (await Member.attach(await addKey("one", "all of a"), 0)).join();
  await publish("a/secret", "1");
  const second = await (await Member.attach(await addKey("two", "all of a"), 1)).join();
  await narrow("one");
  await first.leave();
  await Member.attach(await addKey("one", "all of a"), 0);
  await cluster.clock.advance(2_000);
  expect(second.texts).toEqual(["1"]);
});

it.each<[when: string, hasRoom: boolean]>([
  ["before it connects again", true],
  ["before its repeat", false],
])("asks a member to release an event of QoS 2 that it loses the right to %s", async (_, hasRoom) => {
  const first = await (await Member.attach(await addKey("one", "all of a"), 0)).join(2);
  await publish("a/secret", "1", 2);
  expect(first.texts).toEqual(["1"]);
  await first.leave();
  if (hasRoom) await narrow("one");
  const again = await Member.attach(await addKey("one", "all of a"), 1, { hasRoom });
  if (!hasRoom) await narrow("one");
  await again.makeRoom();
  expect([again.texts, again.peer.released]).toEqual([[], [1]]);
});

it("refuses to join a share if the principal's API keys together do not allow all of its events", async () => {
  const member = await Member.attach(await addKey("one", "all of a"), 0);
  await narrow("one");
  expect(await member.subscribe()).toMatchObject([{ code: 100_702 }]);
});
