import { expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { SessionStore } from "../../../ports/session-store.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment } from "../../broker.ts";
import { createLaterReads, sessionOf } from "../../testing/later-reads.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

const count = 30;
const runningMax = 5;
const filter = parseTopicFilter("a");
const sessionFilter = { filter, qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;

/** Counts the calls that run at once, each of which takes 10 ms. */
class Gauge {
  readonly #clock: { after(delayMs: number, action: () => void): unknown };
  #running = 0;
  most = 0;
  calls = 0;

  constructor(clock: { after(delayMs: number, action: () => void): unknown }) {
    this.#clock = clock;
  }

  async pass(): Promise<void> {
    this.calls += 1;
    this.#running += 1;
    this.most = Math.max(this.most, this.#running);
    await new Promise<void>((resolve) => void this.#clock.after(10, resolve));
    this.#running -= 1;
  }
}

async function attachAll(engine: TestEngine): Promise<readonly Attachment[]> {
  const defaults = { groupId: undefined, protocol: "MQTT", isClean: false, windowMax: 10, will: undefined } as const;
  const all = Array.from({ length: count }, (_, index) => {
    const attachment = { ...defaults, key: String(index), expiryMs: 60_000, onConnected: () => {} };
    return engine.broker.attach(attachment, new RecordingPeer());
  });
  const [attachments] = await Promise.all([Promise.all(all), engine.clock.advance(5_000)]);
  return attachments;
}

/** Begins a STOMP subscription on each of many connections. */
function beginAll(engine: TestEngine): void {
  const defaults = { groupId: undefined, protocol: "STOMP", isClean: false, windowMax: 10, will: undefined } as const;
  const stream = { filters: ["a"], acknowledges: true, offset: undefined };
  for (let index = 0; index < count; index += 1) {
    const key = `00000000-0000-4000-8000-${String(index).padStart(12, "9")}`;
    const request = { ...defaults, key, stream, expiryMs: 60_000, onConnected: () => {} };
    void engine.broker.attach(request, new RecordingPeer());
  }
}

type Act = (engine: TestEngine, attachments: readonly Attachment[]) => void;

const flows: readonly [string, keyof SessionStore, Act][] = [
  ["subscribe", "saveSessionFilters", (_, all) => all.forEach((one) => void one.subscribe([sessionFilter]))],
  ["unsubscribe", "saveSessionFilters", (_, all) => all.forEach((one) => void one.unsubscribe([filter]))],
  ["leave", "detachSession", (_, all) => all.forEach((one) => one.detach({ expiryMs: 60_000, isRegular: true }))],
  ["end", "removeSession", (_, all) => all.forEach((one) => void one.end())],
  ["begin as subscriptions of STOMP", "findFilterOwner", (engine) => beginAll(engine)],
  ["are taken over", "saveSessions", (engine) => void attachAll(engine)],
];

it.each(flows)("makes at most five calls of the store at once for 30 sessions that %s", async (_, name, act) => {
  const memory = createMemoryStore();
  let gauge: Gauge | undefined;
  const call: (...given: never[]) => unknown = memory.sessions[name].bind(memory.sessions);
  const counted = async (...given: never[]): Promise<unknown> => {
    await gauge?.pass();
    return call(...given);
  };
  const engine = await TestEngine.start({ store: withSessionCalls(memory, { [name]: counted }) });
  const attachments = await attachAll(engine);
  gauge = new Gauge(engine.clock);
  act(engine, attachments);
  await engine.clock.advance(5_000);
  expect(gauge.calls).toBeGreaterThanOrEqual(count);
  expect(gauge.most).toBe(runningMax);
  gauge = undefined;
  await engine.stop();
});

it("makes at most five calls of the store at once for 30 sessions that it reads again after a rollback", async () => {
  const clock = new VirtualClock();
  const gauge = new Gauge(clock);
  const reads = createLaterReads(clock, async () => gauge.pass() as Promise<undefined>); // No row.
  const session = sessionOf("s");
  const all = Array.from({ length: count }, () => reads.readUntilDone(session));
  await clock.advance(1_000);
  await Promise.all(all);
  expect(gauge.calls).toBe(count);
  expect(gauge.most).toBe(runningMax);
});
