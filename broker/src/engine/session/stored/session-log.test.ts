import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { Cancellation } from "../../../lib/cancellation.ts";
import { type Logger, silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment, WillRequest } from "../../broker.ts";
import { defaultEngineLimits } from "../../limits.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";
import type { Connected } from "../connected.ts";
import type { Session } from "../session.ts";
import { LaterReads } from "./later-reads.ts";

const append = (): Promise<never> => Promise.reject(new BrokerError("chainUnreachable"));

/** More sessions than lines that the log may have. */
const count = 100;

const will: WillRequest = {
  delayMs: 0,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [] },
  opensTopic: false,
  expiresAfterMs: undefined,
};

function createRecorder(message: string): { readonly logger: Logger; readonly lines: () => number } {
  let lines = 0;
  const warn = (text: string): void => void (lines += text === message ? 1 : 0);
  return { logger: { ...silentLogger, warn }, lines: () => lines };
}

async function attach(engine: TestEngine, expiryMs: number): Promise<readonly Attachment[]> {
  const defaults = { groupId: defaultGroupId, protocol: "MQTT", isClean: false, windowMax: 10 } as const;
  const all = Array.from({ length: count }, (_, index) => {
    const request = { ...defaults, key: String(index), will, expiryMs, onConnected: () => {} };
    return engine.broker.attach(request, new RecordingPeer());
  });
  const [attachments] = await Promise.all([Promise.all(all), engine.clock.settle()]);
  return attachments;
}

it("logs fewer than 50 lines while the store cannot write the ends of 100 connections", async () => {
  const { logger, lines } = createRecorder("end of a connection not written, trying again");
  const memory = createMemoryStore();
  let isAway = false;
  const detachSession: typeof memory.sessions.detachSession = async (...given) => {
    if (isAway) throw new BrokerError("storeUnreachable");
    return memory.sessions.detachSession(...given);
  };
  const engine = await TestEngine.start({ logger, store: withSessionCalls(memory, { detachSession }) });
  const attachments = await attach(engine, 60_000);
  isAway = true;
  for (const attachment of attachments) attachment.detach({ expiryMs: 60_000, isRegular: true });
  await engine.clock.advance(10_000);
  isAway = false;
  await engine.clock.advance(10_000);
  expect(lines()).toBeGreaterThan(0);
  expect(lines()).toBeLessThan(50);
  await engine.stop();
});

it("logs fewer than 50 lines if the wills of 100 sessions only in memory cannot be published", async () => {
  const { logger, lines } = createRecorder("will not published");
  const engine = await TestEngine.start({ logger });
  await engine.broker.open({ topic: "will", groupId: undefined });
  await engine.stop();
  const refusing = await TestEngine.start({ logger, append, chain: engine.chain, store: engine.store });
  const attachments = await attach(refusing, 0);
  for (const attachment of attachments) attachment.detach({ expiryMs: 0, isRegular: false });
  await refusing.clock.advance(100_000);
  expect(lines()).toBeGreaterThan(0);
  expect(lines()).toBeLessThan(50);
  await refusing.stop();
});

it("logs fewer than 50 lines while the store cannot read 100 sessions", async () => {
  const { logger, lines } = createRecorder("session not read again");
  const clock = new VirtualClock();
  const stopping = new Cancellation();
  const reads = new LaterReads({
    clock,
    logger,
    limits: defaultEngineLimits,
    signal: stopping,
    isShared: true,
    nodeId: () => undefined,
    store: withSessionCalls(createMemoryStore(), {
      findSession: () => Promise.reject(new BrokerError("storeUnreachable")),
    }),
    find: () => ({ name: "", group: { id: "1" } }) as Connected, // Nothing else of it is read before the store answers.
    isStopped: () => false,
    end: async () => {},
    release: () => {},
    checkReturned: () => {},
  });
  const session = { id: "s", filterSet: { version: 0 } } as unknown as Session; // As above.
  const all = Array.from({ length: count }, () => reads.readUntilDone(session));
  await clock.advance(10_000);
  stopping.abort();
  await Promise.all([...all, clock.settle()]);
  expect(lines()).toBeGreaterThan(0);
  expect(lines()).toBeLessThan(50);
});
