import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { StalledSocket } from "../../testing/stalled-socket.ts";
import { outboxBytesMax } from "./limits.ts";
import { UnreadBytes } from "./memory.ts";
import { Outbox } from "./outbox.ts";

const perTurn = 500;
const turns = 20;

/** Packets of two bytes, each with its number. */
function numbered(from: number): Buffer[] {
  return Array.from({ length: perTurn }, (_, index) => Buffer.of((from + index) >> 8, (from + index) & 0xff));
}

it("sends the packets of a turn in one write, and in order", async () => {
  const socket = new StalledSocket();
  const outbox = new Outbox(socket, new UnreadBytes(1_000_000));
  const sent: Buffer[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    for (const packet of numbered(turn * perTurn)) {
      sent.push(packet);
      outbox.write(packet);
    }
    await setImmediate();
  }
  expect(socket.chunks).toBe(turns);
  expect(socket.writableLength).toBe(2 * perTurn * turns);
  socket.startReading();
  await setImmediate();
  expect(Buffer.concat(socket.received)).toEqual(Buffer.concat(sent));
});

it("sends the held bytes before the stream ends", async () => {
  const socket = new StalledSocket();
  const outbox = new Outbox(socket, new UnreadBytes(1_000_000));
  const [first, last] = [Buffer.alloc(100, 1), Buffer.alloc(2, 2)];
  outbox.write(first);
  outbox.write(last);
  outbox.close();
  socket.end();
  socket.startReading();
  await setImmediate();
  expect(Buffer.concat(socket.received)).toEqual(Buffer.concat([first, last]));
});

it("if the outbox had no room, the socket emits drain afterwards, even if the socket takes all bytes at once", async () => {
  const socket = new StalledSocket();
  socket.startReading();
  const outbox = new Outbox(socket, new UnreadBytes(1_000_000));
  const drained = once(socket, "drain");
  outbox.write(Buffer.alloc(outboxBytesMax));
  expect(outbox.hasRoom).toBe(false);
  await drained;
  expect(outbox.hasRoom).toBe(true);
});

it("calls onAccepted once the socket has accepted the bytes, and refuses to write after the stream has ended", async () => {
  const socket = new StalledSocket();
  const outbox = new Outbox(socket, new UnreadBytes(1_000_000));
  const taken: number[] = [];
  for (const turn of [1, 2]) {
    expect(outbox.write(Buffer.alloc(10), () => void taken.push(turn))).toBe(true);
    outbox.write(Buffer.alloc(10));
    await setImmediate();
  }
  expect(taken).toEqual([]);
  outbox.close();
  socket.end();
  const settled = outbox.settled();
  socket.startReading();
  await settled;
  expect(taken).toEqual([1, 2]);
  expect(outbox.write(Buffer.alloc(1), () => void taken.push(3))).toBe(false);
  await outbox.settled();
});

it("is settled only after it has written the bytes that it still held", async () => {
  const socket = new StalledSocket();
  const outbox = new Outbox(socket, new UnreadBytes(1_000_000));
  let isTaken = false;
  outbox.write(Buffer.alloc(10), () => (isTaken = true));
  const settled = outbox.settled();
  socket.startReading();
  await settled;
  expect(isTaken).toBe(true);
});

it("is settled again only after it has written later bytes", async () => {
  const socket = new StalledSocket();
  socket.startReading();
  const outbox = new Outbox(socket, new UnreadBytes(1_000_000));
  let taken = 0;
  for (const count of [1, 2]) {
    outbox.write(Buffer.alloc(10), () => (taken += 1));
    await outbox.settled();
    expect(taken).toBe(count);
  }
});

it("never calls onAccepted if the connection breaks first", async () => {
  const socket = new StalledSocket();
  socket.on("error", () => {});
  const outbox = new Outbox(socket, new UnreadBytes(1_000_000));
  const taken: number[] = [];
  for (const turn of [1, 2]) {
    outbox.write(Buffer.alloc(10), () => void taken.push(turn));
    await setImmediate();
  }
  outbox.close();
  const settled = outbox.settled();
  socket.destroy(new Error("reset"));
  await settled;
  await setImmediate();
  expect(taken).toEqual([]);
});

it("lets many subscriptions wait until it is settled, without a listener for each", async () => {
  const warned = vi.spyOn(process, "emitWarning");
  const socket = new StalledSocket();
  const outbox = new Outbox(socket, new UnreadBytes(1_000_000));
  outbox.write(Buffer.alloc(10), () => {});
  outbox.close();
  const settled = Array.from({ length: 20 }, () => outbox.settled());
  socket.startReading();
  await Promise.all(settled);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
