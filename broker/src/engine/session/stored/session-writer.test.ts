import { expect, it } from "vitest";
import { positionZero } from "../../../domain/position.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { TimeSlices } from "../../../lib/time-slices.ts";
import type { SessionId, SessionState, SessionStore } from "../../../ports/session-store.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { defaultEngineLimits } from "../../limits.ts";
import { SessionWriter } from "./session-writer.ts";

function createWriter(
  saveSessions: SessionStore["saveSessions"],
  clock: VirtualClock,
  slices = new TimeSlices(clock),
): SessionWriter {
  const store = { sessions: { saveSessions } };
  return new SessionWriter({
    store,
    clock,
    logger: silentLogger,
    limits: defaultEngineLimits,
    slices,
    onRefused: () => {},
  });
}

it("if the store refused a session, resolves its promise as soon as the session is written under its new epoch", async () => {
  const clock = new VirtualClock();
  const session = { state: stateOf(1), written: () => undefined };
  const writer = createWriter(async (rows) => rows.filter(({ epoch }) => epoch === 1).map(({ id }) => id), clock);
  let isWritten = false;
  void writer.written(session).then(() => (isWritten = true));
  await clock.advance(100);
  expect(isWritten).toBe(false);
  session.state = stateOf(2);
  writer.note(session);
  await clock.advance(100);
  expect(isWritten).toBe(true);
});

it("encodes many sessions in slices, and writes at most 500 of them in one transaction", async () => {
  const clock = new VirtualClock();
  /** A simulated event loop: encoding takes a millisecond, and other work comes between two turns. */
  const turns = { now: 0, encoded: 0, most: 0 };
  const endTurn = (): void => {
    turns.most = Math.max(turns.most, turns.encoded);
    turns.encoded = 0;
  };
  const soon = (action: () => void): void => {
    clock.soon(() => {
      endTurn();
      action();
    });
  };
  const slices = new TimeSlices({ monotonic: () => turns.now, soon });
  const written: number[] = [];
  const saveSessions = async (rows: readonly SessionState[]) => {
    endTurn();
    written.push(rows.length);
    return [];
  };
  const writer = createWriter(saveSessions, clock, slices);
  for (let number = 0; number < 1_200; number += 1) {
    writer.note({
      written: () => undefined,
      get state() {
        turns.now += 1;
        turns.encoded += 1;
        return stateOf(1, number);
      },
    });
  }
  await clock.advance(5_000);
  expect(written.reduce((sum, count) => sum + count, 0)).toBe(1_200);
  expect(Math.max(...written)).toBeLessThanOrEqual(500);
  expect(turns.most).toBeLessThanOrEqual(10);
});

it("writes no older state of a session after its last state", async () => {
  const clock = new VirtualClock();
  const saves: (readonly string[])[] = [];
  const saveSessions = async (rows: readonly SessionState[]) => {
    saves.push(rows.map(({ id, epoch }) => `${id.at(-1)} of epoch ${epoch}`));
    await clock.settle();
    return [];
  };
  const writer = createWriter(saveSessions, clock);
  const first = { state: stateOf(1, 1), written };
  const second = {
    get state() {
      first.state = stateOf(2, 1);
      void writer.writeLast(first);
      return stateOf(1, 2);
    },
    written,
  };
  writer.note(first);
  writer.note(second);
  await clock.advance(100);
  expect(saves).toEqual([["1 of epoch 2"], ["2 of epoch 1"]]);
});

it("does not write a session that was forgotten while its write failed, or while the sessions before it were written", async () => {
  const clock = new VirtualClock();
  const saves: (readonly string[])[] = [];
  const sessions = Array.from({ length: 502 }, (_, number) => ({ state: stateOf(1, number), written }));
  const [failing, last] = [sessions[0], sessions[501]];
  const saveSessions = async (rows: readonly SessionState[]) => {
    saves.push(rows.map(({ id }) => id));
    if (saves.length === 2 && last !== undefined) writer.forget(last);
    if (saves.length > 1 || failing === undefined) return [];
    writer.forget(failing);
    throw new Error("away");
  };
  const writer = createWriter(saveSessions, clock);
  for (const session of sessions) writer.note(session);
  await clock.advance(1_000);
  const ids = sessions.map(({ state }) => state.id);
  expect(saves).toEqual([ids.slice(0, 500), ids.slice(1, 501)]);
});

function stateOf(epoch: number, number = 1): SessionState {
  const id = `00000000-0000-4000-8000-${String(number).padStart(12, "0")}` as SessionId; // Any UUID is a session's identifier.
  return { id, epoch, cursor: positionZero, taken: positionZero, outside: positionZero, inFlight: new Uint8Array() };
}

function written(): void {}

it("warns once writes have failed for five seconds, until a write succeeds", async () => {
  const clock = new VirtualClock();
  let isAway = true;
  const writer = new SessionWriter({
    store: { sessions: { saveSessions: async () => (isAway ? Promise.reject(new Error("away")) : []) } },
    clock,
    logger: silentLogger,
    limits: defaultEngineLimits,
    slices: new TimeSlices(clock),
    onRefused: () => {},
  });
  writer.note({ state: stateOf(1), written: () => undefined });
  await clock.advance(4_000);
  expect(writer.findWarning()).toBeUndefined();
  await clock.advance(4_000);
  expect(writer.findWarning()).toMatch(/^the states of sessions are not written, .*: away \(since .*Z\)$/);
  isAway = false;
  await clock.advance(60_000);
  expect(writer.findWarning()).toBeUndefined();
});
