import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { TimeSlices } from "../../../lib/time-slices.ts";
import { MemoryBudget } from "../../in-flight/memory-budget.ts";
import { StalledSocket } from "../../testing/stalled-socket.ts";
import { type Cutter, Intake } from "./intake.ts";
import { outboxBytesMax } from "./limits.ts";
import { ConnectionMemory, UnreadBytes } from "./memory.ts";

/** Each byte is a unit. */
class ByteCutter implements Cutter<number> {
  /** While true, the bytes belong to a unit that does not end. */
  isUnfinished = false;
  #left: number[] = [];

  get heldBytes(): number {
    return this.#left.length;
  }

  discard(): void {
    this.#left = [];
  }

  push(chunk: Buffer, take: (unit: number) => boolean): void {
    if (this.isUnfinished) return;
    this.#left.push(...chunk);
    this.resume(take);
  }

  resume(take: (unit: number) => boolean): void {
    for (let unit = this.#left.shift(); unit !== undefined; unit = this.#left.shift()) if (!take(unit)) return;
  }
}

const answerBytes = 4_096;
/** Units of one chunk. Their answers take four times the bytes that may wait for a client. */
const units = Array.from({ length: (4 * outboxBytesMax) / answerBytes }, (_, index) => index % 256);

const endless = new TimeSlices({ monotonic: () => 0, soon: () => {} });

/** Gives a long answer to each unit at once. With `staysBusy`, the unit is still being handled for a moment after its answer. */
class Talk {
  readonly socket = new StalledSocket();
  readonly taken: number[] = [];
  ends = 0;
  readonly cutter = new ByteCutter();
  /** Has no room as soon as bytes wait for the client. */
  readonly unread = new UnreadBytes(1);
  readonly #intake: Intake<number>;

  constructor({ staysBusy, slices = endless }: { readonly staysBusy: boolean; readonly slices?: TimeSlices }) {
    const metrics = { connectionEnded: () => {}, watchBytesInFlight: () => {} };
    const memory = new ConnectionMemory(new MemoryBudget({ bytesMax: 2 ** 26, metrics }));
    this.#intake = new Intake<number>(this.socket, {
      memory: Object.assign(memory, { unread: this.unread }),
      slices,
      cutter: this.cutter,
      onBytes: () => {},
      onUnit: (unit) => {
        this.taken.push(unit);
        this.#intake.outbox.write(Buffer.alloc(answerBytes, unit));
        if (staysBusy) this.#intake.whileBusy(Promise.resolve(), () => {});
      },
      onFailed: (error) => {
        throw error;
      },
      keptBytes: () => 0,
      onDrained: () => {},
      onEnded: () => {
        this.ends += 1;
      },
      onBroken: () => {
        this.ends += 1;
      },
      onOutOfMemory: () => {},
    });
  }

  close(): void {
    this.#intake.close();
  }

  /** Sends bytes that answer no unit. */
  deliver(bytes: Buffer): void {
    this.#intake.outbox.write(bytes);
  }
}

it.each([false, true])(
  "handles no further unit while the client's outbox is full, and continues when the client reads; busy after each unit: %s",
  async (staysBusy) => {
    const talk = new Talk({ staysBusy });
    talk.socket.push(Buffer.from(units));
    talk.socket.push(null);
    for (let turn = 0; turn < 4 * units.length; turn += 1) await setImmediate();
    expect(talk.taken.length * answerBytes).toBeLessThanOrEqual(outboxBytesMax);
    expect(talk.ends).toBe(0);
    talk.socket.startReading();
    while (talk.ends === 0) await setImmediate();
    expect(talk.taken).toEqual(units);
    const received = Buffer.concat(talk.socket.received);
    expect(units.filter((unit, index) => received[index * answerBytes] === unit)).toHaveLength(units.length);
  },
);

it("a closed intake frees the received bytes and continues to read, even if the client has yet to read its answers", async () => {
  const talk = new Talk({ staysBusy: false });
  talk.socket.push(Buffer.from(units));
  await setImmediate();
  expect(talk.cutter.heldBytes).toBeGreaterThan(0);
  talk.close();
  expect([talk.cutter.heldBytes, talk.socket.isPaused()]).toEqual([0, false]);
  talk.socket.startReading();
  talk.socket.destroy();
});

it("frees its part of the shared output memory once its client has read the last answer", async () => {
  const talk = new Talk({ staysBusy: false });
  talk.socket.push(Buffer.of(0));
  while (talk.unread.hasRoom) await setImmediate();
  talk.socket.startReading();
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  expect(talk.unread.hasRoom).toBe(true);
  talk.socket.destroy();
});

it("continues to read once the client has read the events that filled its outbox, even if only a part of a unit came meanwhile", async () => {
  const talk = new Talk({ staysBusy: false });
  talk.deliver(Buffer.alloc(outboxBytesMax));
  talk.cutter.isUnfinished = true;
  talk.socket.push(Buffer.of(0));
  while (!talk.socket.isPaused()) await setImmediate();
  talk.cutter.isUnfinished = false;
  talk.socket.startReading();
  talk.socket.push(Buffer.of(1));
  for (let turn = 0; turn < 10; turn += 1) await setImmediate();
  expect(talk.taken).toEqual([1]);
  talk.socket.destroy();
});

it.each(["end", "close"])(
  "handles the ends of many connections in slices, if each socket emits '%s'",
  async (event) => {
    let now = 0;
    const slices = new TimeSlices({ monotonic: () => (now += 1), soon: (action) => void setImmediate().then(action) });
    const talks = Array.from({ length: 100 }, () => new Talk({ staysBusy: false, slices }));
    const countEnded = (): number => talks.filter(({ ends }) => ends === 1).length;
    for (const { socket } of talks) socket.emit(event);
    const counts = new Set([countEnded()]);
    while (countEnded() < talks.length) {
      await setImmediate();
      counts.add(countEnded());
    }
    expect(counts.size).toBeGreaterThan(5);
  },
);

it("handles the ends of earlier connections before the first unit of a client that came after them", async () => {
  let now = 0;
  const slices = new TimeSlices({ monotonic: () => (now += 1), soon: (action) => void setImmediate().then(action) });
  const talks = Array.from({ length: 100 }, () => new Talk({ staysBusy: false, slices }));
  for (const { socket } of talks) socket.emit("end");
  const client = new Talk({ staysBusy: false, slices });
  client.socket.push(Buffer.of(1, 2));
  while (client.taken.length === 0) await setImmediate();
  expect(talks.filter(({ ends }) => ends === 0)).toEqual([]);
  while (client.taken.length < 2) await setImmediate();
  expect(client.taken).toEqual([1, 2]);
  client.socket.destroy();
});
