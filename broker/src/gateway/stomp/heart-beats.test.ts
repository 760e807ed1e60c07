import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { findHeader } from "./codec/frame.ts";
import { acceptConnect } from "./accept.ts";
import { HeartBeats, type HeartBeatsParts } from "./heart-beats.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function begin(parts: Partial<HeartBeatsParts>) {
  const seen = { sent: 0, writtenBytes: 0, isSilent: false, isAwaited: false };
  const beats = new HeartBeats({
    sentMs: 0,
    receivedMs: 0,
    writtenBytes: () => seen.writtenBytes,
    send: () => {
      seen.sent += 1;
      seen.writtenBytes += 1;
    },
    isAwaited: () => seen.isAwaited,
    onSilent: () => {
      seen.isSilent = true;
    },
    ...parts,
  });
  return { seen, beats };
}

it.each([
  ["0,0", 5_000, [0, 0]],
  [undefined, 5_000, [0, 0]],
  ["1000,2000", 5_000, [5_000, 5_000]],
  ["7000,9000", 5_000, [9_000, 7_000]],
  ["1000,0", 5_000, [0, 5_000]],
  ["1000,1000", 0, [0, 0]],
  ["99999999999,99999999999", 5_000, [86_400_000, 86_400_000]],
] as const)("agrees for the client's %s and the broker's %i ms on %j", (asked, heartBeatMs, [sentMs, receivedMs]) => {
  const headers = [
    ["accept-version", "1.2"],
    ...(asked === undefined ? [] : [["heart-beat", asked] as const]),
  ] as const;
  const frame = { command: "CONNECT", headers, body: Buffer.alloc(0) } as const;
  const accepted = acceptConnect(frame, { heartBeatMs, session: "s", server: "x" });
  expect(accepted.heartBeat).toEqual({ sentMs, receivedMs });
  expect(findHeader(accepted.headers, "heart-beat")).toBe(`${heartBeatMs},${heartBeatMs}`);
});

it.each(["", "1", "1,2,3", "-1,0", "1, 2", "a,b"])("refuses the heart-beat %j", (asked) => {
  const headers = [
    ["accept-version", "1.1"],
    ["heart-beat", asked],
  ] as const;
  const frame = { command: "CONNECT", headers, body: Buffer.alloc(0) } as const;
  expect(() => acceptConnect(frame, { heartBeatMs: 1_000, session: "s", server: "x" })).toThrow(
    /"heart-beat" is two numbers/,
  );
});

it("sends something at least once in each interval, whenever other bytes were written", () => {
  const { seen, beats } = begin({ sentMs: 3_000 });
  let [lastBytes, lastAt, longestMs] = [0, 0, 0];
  for (let now = 1; now <= 60_000; now += 1) {
    if (now % 7_777 === 0) seen.writtenBytes += 10;
    vi.advanceTimersByTime(1);
    if (seen.writtenBytes !== lastBytes) [lastBytes, lastAt] = [seen.writtenBytes, now];
    longestMs = Math.max(longestMs, now - lastAt);
  }
  expect(longestMs).toBeLessThanOrEqual(3_000);
  expect(seen.sent).toBeLessThanOrEqual(60);
  beats.close();
  vi.advanceTimersByTime(10_000);
  expect(seen.sent).toBeLessThanOrEqual(60);
});

/** Two intervals of a second, and the turn in which the broker reads its sockets once more. */
const silentMs = 2_001;

it("ends a client after two intervals without a byte, and not before", () => {
  const { seen, beats } = begin({ receivedMs: 1_000 });
  for (let count = 0; count < 10; count += 1) {
    vi.advanceTimersByTime(1_900);
    beats.received();
  }
  expect(seen.isSilent).toBe(false);
  vi.advanceTimersByTime(silentMs);
  expect(seen.isSilent).toBe(true);
});

it("does not count a client as silent while the broker does not read", () => {
  const { seen } = begin({ receivedMs: 1_000 });
  seen.isAwaited = true;
  vi.advanceTimersByTime(10_000);
  expect(seen.isSilent).toBe(false);
  seen.isAwaited = false;
  vi.advanceTimersByTime(silentMs);
  expect(seen.isSilent).toBe(true);
});

it("neither sends to nor ends a client that agreed on no heart-beats", () => {
  const { seen } = begin({});
  vi.advanceTimersByTime(1_000_000);
  expect(seen).toMatchObject({ sent: 0, isSilent: false });
});
