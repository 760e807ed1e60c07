import { afterEach, expect, it } from "vitest";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment, WillRequest } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

const memory = createMemoryStore();
/** Whether the store carries out a claim but its answer is lost. */
let losesClaims = false;
/** Whether the store answers each claim that another one was faster. */
let refusesClaims = false;
let engine: TestEngine;
afterEach(() => engine.stop());

async function start(): Promise<void> {
  [losesClaims, refusesClaims] = [false, false];
  const store = withSessionCalls(memory, {
    claimSession: async (claim) => {
      if (refusesClaims) return { status: "taken" };
      const claimed = await memory.sessions.claimSession(claim);
      if (losesClaims) throw new Error("the answer is lost");
      return claimed;
    },
  });
  engine = await TestEngine.start({ store });
  await engine.clock.advance(1_500);
}

async function attach(will?: WillRequest): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT" as const, key: "c", isClean: false, windowMax: 10, will };
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, new RecordingPeer());
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  return attachment;
}

const rows = () => memory.sessions.listSessions({ after: undefined, limit: 9 });

it("ends the connection of a session whose attach failed after the store had recorded it, and drops its will", async () => {
  await start();
  losesClaims = true;
  const will: WillRequest = {
    delayMs: 0,
    call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [], mayBeEmpty: true },
    opensTopic: true,
    expiresAfterMs: undefined,
  };
  await expect(attach(will)).rejects.toThrow("the answer is lost");
  expect((await rows()).map(({ session }) => session.detachedAt)).toEqual([undefined]);
  await engine.clock.advance(5_000);
  expect((await rows()).map(({ session }) => session.detachedAt)).toEqual([expect.any(Number)]);
  await engine.clock.advance(70_000);
  expect(await rows()).toEqual([]);
  expect(await engine.broker.exist({ topic: "will", groupId: undefined })).toBe(false);
});

it("if the store refuses every claim of a second attach, marks the session as disconnected", async () => {
  await start();
  await attach();
  refusesClaims = true;
  await expect(attach()).rejects.toMatchObject({ code: 200_300 });
  await engine.clock.advance(5_000);
  expect((await rows()).map(({ session }) => session.detachedAt)).toEqual([expect.any(Number)]);
});

it("if an attach gets no answer but the next attach of the client succeeds, leaves the session connected", async () => {
  await start();
  losesClaims = true;
  await expect(attach()).rejects.toThrow("the answer is lost");
  losesClaims = false;
  const attachment = await attach();
  await engine.clock.advance(70_000);
  expect((await rows()).map(({ session }) => session.detachedAt)).toEqual([undefined]);
  attachment.detach({ expiryMs: 0, isRegular: true });
});
