import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TailClient } from "../harness/tail-client.ts";
import { until } from "../harness/until.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { peakMebibytes } from "./support/process-memory.ts";

const tailCount = 1_000;
const slowCount = 200;
/** So many that they do not fit into the system's buffers of a client that does not read. */
const events = 64;
const contentBytes = 48 * 1024;
/** Room for 64 MiB that wait for all slow readers together, and for 8 MiB of cached pages of the store; the rest is for the broker itself. */
const peakMebibytesMax = 512;
const timeoutMs = 180_000;

let world: RunningWorld;
beforeAll(async () => {
  world = await embeddedWorld.start();
  await world.client.open("many");
});
afterAll(() => world[Symbol.asyncDispose]());

/** These bytes occur once in each event. */
const mark = Buffer.from("\ndata: ");

/** A tail that counts its events. */
class CountingTail {
  readonly socket: Socket;
  bytes = 0;
  events = 0;
  #rest = Buffer.alloc(0);

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => this.#count(chunk));
  }

  #count(chunk: Buffer): void {
    this.bytes += chunk.length;
    const bytes = Buffer.concat([this.#rest, chunk]);
    let from = 0;
    for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, from)) {
      this.events += 1;
      from = at + mark.length;
    }
    this.#rest = bytes.subarray(Math.max(from, bytes.length - mark.length + 1));
  }

  /** Resolves when the stream has begun. */
  static async open(): Promise<CountingTail> {
    const { hostname, port } = new URL(world.broker.url);
    const tail = new CountingTail(connect({ host: hostname, port: Number(port) }));
    tail.socket.write("GET /tail?topic=many HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(tail.socket, "data");
    await until("the first id has come", () => tail.bytes > 150);
    return tail;
  }
}

it(
  `${tailCount} tails of one topic get every event in bounded memory, although ${slowCount} of them do not read for a while`,
  async () => {
    const tails: CountingTail[] = [];
    while (tails.length < tailCount) {
      tails.push(...(await Promise.all(Array.from({ length: 100 }, () => CountingTail.open()))));
    }
    const [slow, fast] = [tails.slice(0, slowCount), tails.slice(slowCount)];
    for (const { socket } of slow) socket.pause();
    const parsed = new TailClient("topic=many&after=OFFSET_FIRST");
    const content = "x".repeat(contentBytes);
    for (let count = 0; count < events; count += 1) await world.client.publish("many", content);
    await parsed.read(world.broker.url, () => parsed.events.length < events);
    expect(parsed.events.map(({ eventId }) => Number(eventId.split("-")[1]))).toEqual(
      Array.from({ length: events }, (_, index) => index + 1),
    );
    const hasAll = (tail: CountingTail): boolean => tail.events >= events;
    await until("every fast tail has everything", () => fast.every(hasAll), { timeoutMs });
    expect(slow.filter(hasAll)).toEqual([]);
    const mebibytes = peakMebibytes(world.broker.pid);
    expect(mebibytes).toBeLessThan(peakMebibytesMax);
    for (const { socket } of slow) socket.resume();
    await until("every slow tail has everything", () => slow.every(hasAll), { timeoutMs });
    expect(new Set(tails.map((tail) => tail.events))).toEqual(new Set([events]));
    process.stdout.write(
      `${tailCount} tails, ${slowCount} of them slow: broker at ${Math.round(mebibytes)} MiB at most\n`,
    );
    for (const { socket } of tails) socket.destroy();
  },
  timeoutMs,
);
