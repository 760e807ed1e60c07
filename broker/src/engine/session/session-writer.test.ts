import { expect, it } from "vitest";
import { positionZero } from "../../domain/position.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { SessionId, SessionState } from "../../ports/session-store.ts";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { defaultEngineLimits } from "../limits.ts";
import { SessionWriter } from "./session-writer.ts";

it("answers who waits for a session that the store refused, once it is written under its new epoch", async () => {
  const clock = new VirtualClock();
  const session = { state: stateOf(1) };
  const writer = new SessionWriter({
    store: { sessions: { saveSessions: async (rows) => rows.filter(({ epoch }) => epoch === 1).map(({ id }) => id) } },
    clock,
    logger: silentLogger,
    limits: defaultEngineLimits,
    onRefused: () => {},
  });
  let isWritten = false;
  void writer.written(session).then(() => (isWritten = true));
  await clock.advance(100);
  expect(isWritten).toBe(false);
  session.state = stateOf(2);
  writer.note(session);
  await clock.advance(100);
  expect(isWritten).toBe(true);
});

function stateOf(epoch: number): SessionState {
  const id = "00000000-0000-4000-8000-000000000001" as SessionId; // Any UUID is one.
  return { id, epoch, cursor: positionZero, taken: positionZero, inFlight: new Uint8Array() };
}
