import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import { createDeferred } from "../../../lib/deferred.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";
import { storeTurnsMax } from "./store-turns.ts";

const request = {
  groupId: undefined,
  protocol: "MQTT",
  key: "c",
  isClean: false,
  windowMax: 1,
  will: undefined,
} as const;

it.each([
  ["rolled-back", "the index rolls back"],
  ["taken", "another session takes the name at the same moment"],
] as const)("says why no try of a claim gave a session, if the store answers '%s'", async (status, reason) => {
  const store = withSessionCalls(createMemoryStore(), { claimSession: async () => ({ status }) });
  const engine = await TestEngine.start({ store });
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, new RecordingPeer());
  const [error] = await Promise.all([attached.catch((thrown: unknown) => thrown), engine.clock.settle()]);
  expect(error).toMatchObject({ code: 200_300, message: expect.stringContaining(reason) });
  await engine.stop();
});

const quota = { of: "tenant", name: "acme", what: "sessions", max: 1 } as const;

it.each([{ status: "full" }, { status: "over-quota", quota }] as const)(
  "does not search the store for a client's session after it refused the client's claim: $status",
  async (refusal) => {
    const memory = createMemoryStore();
    let searches = 0;
    const listSessions: typeof memory.sessions.listSessions = async (page) => {
      searches += 1;
      return memory.sessions.listSessions(page);
    };
    const store = withSessionCalls(memory, { claimSession: async () => refusal, listSessions });
    const engine = await TestEngine.start({ store });
    const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, new RecordingPeer());
    const [error] = await Promise.all([attached.catch((thrown: unknown) => thrown), engine.clock.settle()]);
    expect(error).toBeInstanceOf(BrokerError);
    await engine.clock.advance(5_000);
    expect(searches).toBe(0);
    await engine.stop();
  },
);

it("gives sessions to the newest of many waiting clients first, since the oldest are the next to give up", async () => {
  const memory = createMemoryStore();
  const gate = createDeferred<void>();
  const claimed: string[] = [];
  const claimSession: typeof memory.sessions.claimSession = async (claim) => {
    claimed.push(claim.key);
    await gate.promise;
    return memory.sessions.claimSession(claim);
  };
  const engine = await TestEngine.start({ store: withSessionCalls(memory, { claimSession }) });
  const keys = Array.from({ length: storeTurnsMax + 3 }, (_, index) => String(index));
  const attached = keys.map((key) =>
    engine.broker.attach({ ...request, key, expiryMs: 60_000, onConnected: () => {} }, new RecordingPeer()),
  );
  await engine.clock.settle();
  gate.resolve();
  await Promise.all([...attached, engine.clock.settle()]);
  expect(claimed).toEqual([...keys.slice(0, storeTurnsMax), ...keys.slice(storeTurnsMax).toReversed()]);
  await engine.stop();
});
