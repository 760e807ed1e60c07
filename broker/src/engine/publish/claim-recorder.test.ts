import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import {
  type FencedKey,
  type HeldKey,
  type KeyClaim,
  type PublishKeyRow,
  type PublishKeys,
  type TakenKey,
  toFencedKey,
} from "../../ports/publish-keys.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import type { Claim } from "./claim.ts";
import { ClaimRecorder } from "./claim-recorder.ts";
import { Draft } from "./draft.ts";

const name = parseTopicName("a");
const topic = { name, address: "0x00", digest: "00000000" } as const;

const row = { groupId: defaultGroupId, scope: "", key: "k", token: "t", topic: name, digest: "d", sender: "" };

function toClaim(failed: string[] = [], change: Partial<Claim> = {}): Claim {
  return {
    unrecorded: row,
    mayStart: undefined,
    order: undefined,
    onRecorded: () => {},
    onTaken: () => {},
    onFailed: (error) => void failed.push(String(error)),
    ...change,
  };
}

function toRecorder(recordPublishKeys: PublishKeys["recordPublishKeys"], clock: VirtualClock): ClaimRecorder {
  const keys = { recordPublishKeys, releasePublishKeys: async () => [] };
  const own = { keys, progress: { blockNumber: 0 }, clock };
  return new ClaimRecorder({ ...own, waitMsMax: 1_000, readTime: async () => 0 });
}

function toDraft(...claims: readonly Claim[]): Draft {
  const draft = new Draft();
  const payload = { content: new Uint8Array(1), extensions: [] };
  const each = claims.length === 0 ? [undefined] : claims;
  for (const claim of each) draft.add({ topic, payload, bytes: 1, since: 0, onSettled: () => {}, claim });
  return draft;
}

/** Sends a publish with a key, and `ticks` microtasks after its key was written, another without a key. Returns them in the order of their sending. */
async function sendBoth(ticks: number): Promise<readonly string[]> {
  const written = createDeferred<readonly []>();
  const recorder = toRecorder(() => written.promise, new VirtualClock());
  const sent: string[] = [];
  const send = async (draft: Draft, named: string): Promise<void> => {
    const recorded = recorder.record(draft);
    if (recorded instanceof Promise) await recorded;
    sent.push(named);
  };
  const first = send(toDraft(toClaim()), "first");
  await new Promise(setImmediate);
  written.resolve([]);
  for (let count = 0; count < ticks; count += 1) await Promise.resolve();
  await Promise.all([first, send(toDraft(), "later")]);
  return sent;
}

it("if a transaction's key was just written, no later transaction passes that transaction", async () => {
  for (let ticks = 0; ticks < 30; ticks += 1)
    expect(await sendBoth(ticks), `${ticks} ticks`).toEqual(["first", "later"]);
});

it("refuses the keys of every waiting transaction after the same time if the store does not answer", async () => {
  const clock = new VirtualClock();
  const recorder = toRecorder(() => new Promise(() => {}), clock);
  const failed: string[] = [];
  const all = [1, 2, 3].map(() => recorder.record(toDraft(toClaim(failed))));
  await clock.advance(10_001);
  expect(failed).toHaveLength(3);
  for (const batches of all) expect(await batches).toEqual([]);
});

it("if a publish of a session fails, fails the session's publishes that already wait, so that events keep their order", async () => {
  const clock = new VirtualClock();
  const answers = [createDeferred<readonly []>(), createDeferred<readonly []>()];
  let writes = 0;
  const recordPublishKeys = (rows: readonly unknown[]): Promise<readonly []> => {
    recorded.push(rows.length);
    return answers[writes++]?.promise ?? Promise.resolve([]);
  };
  const recorded: number[] = [];
  const recorder = toRecorder(recordPublishKeys, clock);
  const failed: string[] = [];
  const send = async (session: string | undefined): Promise<number> => {
    const order = session === undefined ? undefined : { session, since: clock.monotonic() };
    return (await recorder.record(toDraft(toClaim(failed, { order })))).length;
  };
  const sent = ["mine", "mine", "other", undefined].map(send);
  await clock.advance(5);
  answers[0]?.reject(new Error("the connection was reset"));
  answers[1]?.resolve([]);
  expect(await Promise.all(sent)).toEqual([0, 0, 1, 1]);
  expect(failed).toEqual(["Error: the connection was reset", "Error: the connection was reset"]);
  expect(recorded).toEqual([1, 1, 1]);
  await clock.advance(1);
  expect(await send("mine")).toBe(1);
});

it("if a publish is refused because its session had moved, refuses the session's later publishes, even under a new epoch of the session", async () => {
  const clock = new VirtualClock();
  const answers: (readonly TakenKey[])[] = [[toFencedKey(row)], []];
  const recorder = toRecorder(async () => answers.shift() ?? [], clock);
  const taken: TakenKey[] = [];
  const order = { session: "mine", since: clock.monotonic() };
  const claim = toClaim([], { order, onTaken: (one) => void taken.push(one) });
  const sent = [claim, claim].map(async (one) => recorder.record(toDraft(one)));
  expect(await Promise.all(sent)).toEqual([[], []]);
  expect(taken).toEqual([toFencedKey(row), toFencedKey(row)]);
});

it("after a failed record, tries to free the key until the store answers, unless it has recorded the key again since", async () => {
  const clock = new VirtualClock();
  const stored = new Map<string, string>();
  let isAway = true;
  const keys = {
    recordPublishKeys: async (rows: readonly PublishKeyRow[]): Promise<readonly TakenKey[]> => {
      const taken = rows.flatMap((one) => {
        const token = stored.get(one.key);
        if (token !== undefined) return { ...one, token };
        stored.set(one.key, one.token);
        return [];
      });
      if (isAway) throw new Error("the connection was reset");
      return taken;
    },
    releasePublishKeys: async (rows: readonly HeldKey[]): Promise<readonly FencedKey[]> => {
      if (isAway) throw new Error("the connection was reset");
      for (const { key, token } of rows) if (stored.get(key) === token) stored.delete(key);
      return [];
    },
  };
  const own = { keys, progress: { blockNumber: 0 }, clock };
  const recorder = new ClaimRecorder({ ...own, waitMsMax: 1_000, readTime: async () => 0 });
  const send = async (key: string, token: string): Promise<number> =>
    (await recorder.record(toDraft(toClaim([], { unrecorded: { ...row, key, token } })))).length;
  expect([await send("j", "1"), await send("k", "2")]).toEqual([0, 0]);
  isAway = false;
  expect(await send("k", "3")).toBe(1);
  expect(stored).toEqual(
    new Map([
      ["j", "1"],
      ["k", "3"],
    ]),
  );
  await clock.advance(1_000);
  expect(stored).toEqual(new Map([["k", "3"]]));
  expect(clock.timers).toBe(0);
});

it("if the store's answer names a failed record of a key, but that record has been freed meanwhile, records the key", async () => {
  const clock = new VirtualClock();
  const stored = new Map<string, string>();
  const answered = createDeferred<void>();
  let writes = 0;
  let releases = 0;
  const keys = {
    recordPublishKeys: async ([one]: readonly PublishKeyRow[]): Promise<readonly TakenKey[]> => {
      if (one === undefined) return [];
      writes += 1;
      const token = stored.get(one.key);
      if (token === undefined) stored.set(one.key, one.token);
      if (writes === 1) throw new Error("the connection was reset");
      if (writes === 2) await answered.promise;
      return token === undefined ? [] : [{ ...one, token }];
    },
    releasePublishKeys: async (rows: readonly HeldKey[]): Promise<readonly FencedKey[]> => {
      releases += 1;
      if (releases === 1) throw new Error("the connection was reset");
      for (const { key, token } of rows) if (stored.get(key) === token) stored.delete(key);
      return [];
    },
  };
  const own = { keys, progress: { blockNumber: 0 }, clock };
  const recorder = new ClaimRecorder({ ...own, waitMsMax: 1_000, readTime: async () => 0 });
  const taken: TakenKey[] = [];
  const send = async (token: string): Promise<number> => {
    const claim = toClaim([], { unrecorded: { ...row, token }, onTaken: (one) => void taken.push(one) });
    return (await recorder.record(toDraft(claim))).length;
  };
  expect(await send("1")).toBe(0);
  const sent = send("2");
  await clock.advance(1_000);
  expect(stored).toEqual(new Map());
  answered.resolve();
  expect(await sent).toBe(1);
  expect(taken).toEqual([]);
  expect(stored).toEqual(new Map([["k", "2"]]));
});

it.each([0, 2_000])(
  "a session's key that the store records late, after %i others, does not replace the key's next publish",
  async (count) => {
    const clock = new VirtualClock();
    const store = createMemoryStore();
    const answered = createDeferred<void>();
    let writes = 0;
    const recordPublishKeys = async (rows: readonly KeyClaim[]): Promise<readonly TakenKey[]> => {
      writes += 1;
      if (writes === 1) await answered.promise;
      return store.recordPublishKeys(rows);
    };
    const keys = {
      recordPublishKeys,
      releasePublishKeys: (rows: readonly HeldKey[]) => store.releasePublishKeys(rows),
    };
    const own = { keys, progress: { blockNumber: 0 }, clock };
    const recorder = new ClaimRecorder({ ...own, waitMsMax: 1_000, readTime: async () => 0 });
    const sent: string[] = [];
    const toOwn = (change: Partial<PublishKeyRow>) =>
      toClaim([], { unrecorded: { ...row, ...change, mayReplace: true } });
    const send = async (token: string, digest: string, others: readonly Claim[] = []): Promise<void> => {
      if ((await recorder.record(toDraft(...others, toOwn({ token, digest })))).length > 0) sent.push(token);
    };
    const others = Array.from({ length: count }, (_, index) => toOwn({ key: `k${index}`, token: `t${index}` }));
    const late = send("1", "first", others);
    await clock.advance(10_001);
    await late;
    await send("2", "second");
    answered.resolve();
    await clock.settle();
    if (sent.length === 0) await send("3", "second");
    expect(await store.findPublishKey(row)).toMatchObject({ token: sent[0] });
  },
);

it.each([
  ["another node has taken over since", { sender: "0x02", isLive: true }],
  ["another node may have taken over since", { sender: "0x01", isLive: false }],
])("frees no key of a failed record that %s", async (_, { sender, isLive }) => {
  const stored: PublishKeyRow[] = [];
  let isAway = true;
  const keys = {
    recordPublishKeys: async (rows: readonly PublishKeyRow[]): Promise<readonly TakenKey[]> => {
      if (stored.length === 0) stored.push(...rows);
      if (isAway) throw new Error("the connection was reset");
      return stored.filter(({ token }) => rows.every((one) => one.token !== token));
    },
    releasePublishKeys: async (rows: readonly HeldKey[]): Promise<readonly FencedKey[]> => {
      if (isAway) throw new Error("the connection was reset");
      const [held] = stored;
      if (rows.some(({ token, sender }) => token === held?.token && sender === held.sender)) stored.pop();
      return [];
    },
  };
  const own = { keys, progress: { blockNumber: 0 }, clock: new VirtualClock() };
  const recorder = new ClaimRecorder({ ...own, waitMsMax: 1_000, readTime: async () => 0 });
  const taken: TakenKey[] = [];
  const send = async (token: string, mayStart: () => boolean): Promise<number> => {
    const change = { unrecorded: { ...row, token, sender: "0x01" }, mayStart };
    return (await recorder.record(toDraft(toClaim([], { ...change, onTaken: (one) => void taken.push(one) })))).length;
  };
  let isMember = true;
  expect(await send("1", () => isMember)).toBe(0);
  await own.clock.settle();
  isMember = isLive;
  const moved = stored.map((one) => ({ ...one, sender }));
  stored.splice(0, 1, ...moved);
  isAway = false;
  expect(await send("2", () => true)).toBe(0);
  expect(taken).toEqual(moved);
  expect(stored).toEqual(moved);
});
