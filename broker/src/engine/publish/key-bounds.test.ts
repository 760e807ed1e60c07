import { afterEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { endOfBlock } from "../../domain/position.ts";
import { MemoryApiKeys } from "../../store/memory/memory-api-keys.ts";
import { formatKeyCredential } from "../access/credential.ts";
import type { Attachment, PublishCall, PublishResult } from "../broker.ts";
import { asCaller, type CalledBroker, testCaller } from "../testing/as-caller.ts";
import { secret, sha256 } from "../testing/key-secret.ts";
import { keyedCall, keyedTopic, refusal, sendKeyed } from "../testing/keyed-publish.ts";
import { publish } from "../testing/publish.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine, type TestEngineOptions } from "../testing/test-engine.ts";

const day = 86_400_000;

let engine: TestEngine;
afterEach(() => engine.stop());

const topic = keyedTopic;
const call = keyedCall;
const send = (one: PublishCall): Promise<PublishResult> => sendKeyed(engine, one);

async function start(options: TestEngineOptions = {}): Promise<void> {
  engine = await TestEngine.start(options);
  await engine.broker.open(topic);
}

/** Starts an engine with a key for each owner, and opens the topic of each. Returns a function: the broker as an owner calls it. */
async function startWithKeys(
  owners: readonly string[],
  options: TestEngineOptions,
): Promise<(owner: string) => CalledBroker> {
  const apiKeys = new MemoryApiKeys();
  const toId = (owner: string): string => String(owners.indexOf(owner)).padStart(16, "0");
  const own = { digest: sha256(secret), roles: ["all"], createdAt: 0, expiresAt: undefined, revokedAt: undefined };
  for (const owner of owners) {
    const [principal = "", tenant] = owner.split("/").toReversed();
    await apiKeys.insertApiKey({ ...own, id: toId(owner), principal, tenant }, 10);
  }
  const roles = new Map([["all", [{ effect: "allow", actions: ["open", "publish"] } as const]]]);
  engine = await TestEngine.start({ ...options, keys: { apiKeys, roles, sha256 } });
  const as = (owner: string): CalledBroker => {
    const principal = engine.running.calls.authenticate(formatKeyCredential({ id: toId(owner), secret }), testCaller);
    if (principal instanceof Promise) throw new Error("a key is known at once");
    return asCaller(engine.running, { ...testCaller, principal });
  };
  for (const owner of owners) await as(owner).open(topic);
  return as;
}

async function attach(key: string): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, windowMax: 9 } as const;
  const rest = { will: undefined, expiryMs: 5_000, onConnected: () => {} };
  const attached = engine.broker.attach({ ...request, ...rest }, new RecordingPeer());
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

/** Records the position up to which each read of the index goes. */
function noteReads(): number[] {
  const upTo: number[] = [];
  const { store } = engine;
  const readBatches = store.readBatches.bind(store);
  store.readBatches = (groupId, range) => {
    upTo.push(range.upTo);
    return readBatches(groupId, range);
  };
  return upTo;
}

describe("the limits of publish keys", () => {
  it("forgets a key within a few minutes after its lifetime, and not before", async () => {
    await start({ limits: { publishKeyKeptMs: 600_000 } });
    const first = await send(call("k"));
    await engine.clock.advance(400_000);
    expect(await send(call("k"))).toEqual(first);
    await engine.clock.advance(300_000);
    expect((await send(call("k"))).eventId).not.toBe(first.eventId);
  });

  it.each([
    ["forwards", 2 * day],
    ["backwards", -2 * day],
  ])("forgets a key neither early nor late when the clock is set %s", async (_direction, byMs) => {
    await start({ limits: { publishKeyKeptMs: 600_000 } });
    const first = await send(call("k"));
    engine.clock.step(byMs);
    await engine.clock.advance(200_000);
    expect(await send(call("k"))).toEqual(first);
    await engine.clock.advance(500_000);
    expect((await send(call("k"))).eventId).not.toBe(first.eventId);
  });

  it("keeps a key for its whole lifetime even if no key was used for a long time before", async () => {
    await start({ limits: { publishKeyKeptMs: 600_000 } });
    await send(call("forgotten"));
    await engine.clock.advance(2_000_000);
    const first = await send(call("k"));
    await engine.clock.advance(400_000);
    expect(await send(call("k"))).toEqual(first);
  });

  it("refuses new keys at the group's limit, still answers repeats, and accepts publishes without a key", async () => {
    await start({ limits: { publishKeysMax: 3 } });
    const first = await send(call("k0"));
    for (const key of ["k1", "k2"]) await send(call(key));
    await expect(send(call("k3"))).rejects.toEqual(refusal("overQuota"));
    expect(await send(call("k0"))).toEqual(first);
    expect((await send(call(undefined))).status).toBe("SUCCESS");
  });

  it("refuses new keys of a caller at its limit, and accepts keys of a session", async () => {
    await start({ limits: { publishKeysPerCallerMax: 2 } });
    const first = await send(call("k0"));
    await send(call("k1"));
    await expect(send(call("k2"))).rejects.toEqual(refusal("overQuota"));
    expect(await send(call("k0"))).toEqual(first);
    expect((await send(call("1", "text", { session: { id: "s" } }))).status).toBe("SUCCESS");
  });

  it("refuses new keys of all principals of a tenant at the limit of a caller, also after a restart, and accepts those of others", async () => {
    const others = ["globex/shop", "acme"];
    const ofTenant = ["acme/shop", "acme/till", "acme/web"];
    const as = await startWithKeys([...ofTenant, ...others], { limits: { publishKeysPerCallerMax: 2 } });
    const sendAs = async (owner: string, key: string): Promise<PublishResult> => {
      const [answer] = await Promise.all([publish(as(owner), call(key)), engine.clock.settle()]);
      return answer;
    };
    const first = await sendAs("acme/shop", "k0");
    await sendAs("acme/till", "k0");
    const refusesMore = async (): Promise<void> => {
      for (const owner of ofTenant) await expect(sendAs(owner, "k2")).rejects.toEqual(refusal("overQuota"));
    };
    await refusesMore();
    expect(await sendAs("acme/shop", "k0")).toEqual(first);
    for (const owner of others) expect((await sendAs(owner, "k2")).status).toBe("SUCCESS");
    await engine.rebuild();
    await engine.broker.start();
    await engine.clock.settle();
    await refusesMore();
  });

  it("refuses new keys of a session at its limit until it releases one, and accepts keys of other sessions", async () => {
    await start({ limits: { publishKeysPerSessionMax: 2 } });
    for (const key of ["1", "2"]) await send(call(key, "text", { session: { id: "s" } }));
    await expect(send(call("3", "text", { session: { id: "s" } }))).rejects.toEqual(refusal("overQuota"));
    expect((await send(call("3", "text", { session: { id: "other" } }))).status).toBe("SUCCESS");
    expect((await send(call("3"))).status).toBe("SUCCESS");
    await engine.broker.release({ groupId: undefined, session: { id: "s" }, key: "1" });
    expect((await send(call("3", "text", { session: { id: "s" } }))).status).toBe("SUCCESS");
  });

  it("if all sessions together have as many keys as a caller may have, refuses new keys of sessions, but accepts keys of a will and of a caller", async () => {
    await start({ limits: { publishKeysPerCallerMax: 2 } });
    const sessions = [];
    for (const key of ["a", "b", "c"]) sessions.push((await attach(key)).session.keys);
    const [a, b, c] = sessions;
    await send(call("1", "text", { session: a }));
    await send(call("1", "text", { session: b }));
    await expect(send(call("1", "text", { session: c }))).rejects.toEqual(refusal("overQuota"));
    expect((await send(call("1", "text", { session: { id: "will" } }))).status).toBe("SUCCESS");
    expect((await send(call("1"))).status).toBe("SUCCESS");
  });

  it("counts a key once if its session releases it several times at once", async () => {
    await start({ limits: { publishKeysPerSessionMax: 3 } });
    const session = { id: "s" };
    const publishAs = (key: string): Promise<PublishResult> => publish(engine.broker, call(key, "text", { session }));
    for (const key of ["1", "2", "3"]) await publishAs(key);
    const released = ["1", "2", "2"].map((key) => engine.broker.release({ groupId: undefined, session, key }));
    await Promise.all(released);
    for (const key of ["4", "5"]) await publishAs(key);
    await expect(publishAs("6")).rejects.toEqual(refusal("overQuota"));
  });

  it("counts a caller's keys from before a restart towards the caller's limit", async () => {
    await start({ limits: { publishKeysPerCallerMax: 20 } });
    for (let count = 0; count < 20; count += 1) await publish(engine.broker, call(String(count)));
    await engine.rebuild();
    await engine.broker.start();
    await engine.clock.settle();
    await expect(send(call("20"))).rejects.toEqual(refusal("overQuota"));
  });

  it("forgets the keys of a session that has ended", async () => {
    await start();
    const attachment = await attach("c");
    await send(call("1", "text", { session: attachment.session.keys }));
    expect((await engine.store.countPublishKeys(defaultGroupId, 1)).total).toBe(1);
    attachment.detach({ expiryMs: 5_000, isRegular: true });
    await engine.clock.advance(10_000);
    expect((await engine.store.countPublishKeys(defaultGroupId, 1)).total).toBe(0);
  });
});

describe("a repeat of a publish with a key", () => {
  it("reads only the block of its event", async () => {
    await start();
    const upTo = noteReads();
    const first = await send(call("k"));
    const firstBlock = engine.chain.head;
    await engine.publishMany("a", 20);
    expect(await send(call("k"))).toEqual(first);
    expect(upTo).toEqual([endOfBlock(firstBlock)]);
  });

  it("if the event's block is unknown, reads the topic from the position of the first request; the next repeat reads only the event's block", async () => {
    await start();
    const first = await send(call("k"));
    await engine.publishMany("a", 20);
    await engine.rebuild();
    await engine.broker.start();
    const upTo = noteReads();
    for (let repeat = 0; repeat < 3; repeat += 1) expect(await send(call("k"))).toEqual(first);
    expect(upTo).toHaveLength(3);
    expect(upTo[2]).toBeLessThan(upTo[0] ?? 0);
  });
});
