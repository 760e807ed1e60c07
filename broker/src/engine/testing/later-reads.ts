import { Cancellation } from "../../lib/cancellation.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { SessionStore } from "../../ports/session-store.ts";
import type { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { defaultEngineLimits } from "../limits.ts";
import type { Connected } from "../session/connected.ts";
import type { Session } from "../session/session.ts";
import { LaterReads } from "../session/stored/later-reads.ts";
import { withSessionCalls } from "./with-session-calls.ts";

/** A session as far as LaterReads reads it. */
export function sessionOf(id: string, { hasJoined = false } = {}): Session {
  const fields = { id, key: { epoch: 0 }, filterSet: { version: 0 }, memberships: { hasJoined } };
  return fields as unknown as Session; // All fields that LaterReads reads.
}

/** LaterReads of connected sessions that the store reads by `findSession`. Those whose identifier begins with `other` are of group 2, all others of group 1. */
export function createLaterReads(
  clock: VirtualClock,
  findSession: SessionStore["findSession"],
  checkReturned = (): void => {},
): LaterReads {
  const progress = { generation: 0, version: 0 };
  const find = ({ id }: Session): Connected => {
    const group = { id: id.startsWith("other") ? "2" : "1", progress, findGeneration: async () => 0 };
    return { group, peer: { ended: () => {} } } as unknown as Connected; // As above.
  };
  return new LaterReads({
    clock,
    logger: silentLogger,
    limits: defaultEngineLimits,
    signal: new Cancellation(),
    isShared: true,
    nodeId: () => undefined,
    store: withSessionCalls(createMemoryStore(), { findSession }),
    find,
    isStopped: () => false,
    end: async () => {},
    release: () => {},
    checkReturned,
  });
}
