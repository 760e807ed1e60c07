import { describe, expect, it } from "vitest";
import { unaborted } from "../../lib/cancellation.ts";
import { bytesAheadMax, bytesAheadTotalMax, EventsAhead, SharedEventsAhead } from "./events-ahead.ts";

const workerCount = 1_000;
const eventBytes = 1_024;

function createWorker(shared: SharedEventsAhead, countAhead = () => 0): EventsAhead {
  return new EventsAhead({ shared, countAhead, stopping: unaborted });
}

/** A thousand workers whose receiver hangs, so that their events do not end. */
function createWorkers(shared: SharedEventsAhead): readonly EventsAhead[] {
  return Array.from({ length: workerCount }, () => createWorker(shared));
}

function fill(worker: EventsAhead, bytes = eventBytes): number {
  let taken = 0;
  for (; !worker.isFull; taken += bytes) worker.take(bytes);
  return taken;
}

/** Each worker in turn takes one event, until all are full. */
function fillInTurn(workers: readonly EventsAhead[]): void {
  for (let open = workers; open.length > 0; open = open.filter(({ isFull }) => !isFull)) {
    for (const worker of open) worker.take(eventBytes);
  }
}

/** Starts a worker's wait. Returns a function that reports whether the wait has ended. */
function startWait(worker: EventsAhead | undefined): () => Promise<boolean> {
  let hasEnded = false;
  void worker?.wait().then(() => (hasEnded = true));
  return async () => {
    await new Promise(setImmediate);
    return hasEnded;
  };
}

describe("workers that take events ahead of their cursors", () => {
  it("each take bytesAheadMax while they are few, and at least an equal share when they are many", () => {
    const taken = createWorkers(new SharedEventsAhead()).map((worker) => fill(worker));
    expect(taken[0]).toBe(bytesAheadMax);
    expect(taken.at(-1)).toBeGreaterThanOrEqual(bytesAheadTotalMax / workerCount);
  });

  it("take at most twice bytesAheadTotalMax if a thousand take their events in turn", () => {
    const shared = new SharedEventsAhead();
    fillInTurn(createWorkers(shared));
    expect(shared.bytes).toBeLessThanOrEqual(2 * bytesAheadTotalMax);
  });

  it("take at most four times bytesAheadTotalMax if each of a thousand takes all its events before the next one starts", () => {
    const shared = new SharedEventsAhead();
    for (const worker of createWorkers(shared)) fill(worker);
    expect(shared.bytes).toBeLessThanOrEqual(4 * bytesAheadTotalMax);
  });

  it("let a worker without events take one of any size, but no second one, when the others hold bytesAheadTotalMax", () => {
    const workers = createWorkers(new SharedEventsAhead());
    const taken = workers.map((worker) => fill(worker));
    workers.at(-1)?.free(taken.at(-1) ?? 0);
    expect(workers.at(-1)?.isFull).toBe(false);
    workers.at(-1)?.take(bytesAheadMax / 2);
    expect(workers.at(-1)?.isFull).toBe(true);
  });

  it("keep no share for workers that hold no events", () => {
    const shared = new SharedEventsAhead();
    const [first] = createWorkers(shared);
    first?.take(bytesAheadTotalMax);
    expect(fill(createWorker(shared))).toBe(bytesAheadMax);
  });

  it("free all bytes when they end", () => {
    const shared = new SharedEventsAhead();
    const workers = createWorkers(shared);
    for (const worker of workers) fill(worker);
    for (const worker of workers) worker.close();
    expect(shared.bytes).toBe(0);
    expect(fill(createWorker(shared))).toBe(bytesAheadMax);
  });
});

describe("a worker that waits for its share", () => {
  it("continues when another worker has freed enough bytes", async () => {
    const [large, ...workers] = createWorkers(new SharedEventsAhead());
    large?.take(bytesAheadTotalMax);
    for (const worker of workers) worker.take(bytesAheadTotalMax / workerCount);
    const hasEnded = startWait(workers[0]);
    large?.free(bytesAheadTotalMax / 2);
    expect(await hasEnded()).toBe(false);
    large?.free(bytesAheadTotalMax / 2 - eventBytes);
    expect(await hasEnded()).toBe(true);
  });

  it("continues when its share has grown, because others have ended", async () => {
    const [large, waiting, ...workers] = createWorkers(new SharedEventsAhead());
    large?.take(bytesAheadTotalMax);
    waiting?.take(bytesAheadMax / 2);
    for (const worker of workers) worker.take(eventBytes);
    const hasEnded = startWait(waiting);
    for (const worker of workers.slice(200)) worker.close();
    expect(await hasEnded()).toBe(false);
    for (const worker of workers.slice(100, 200)) worker.close();
    expect(await hasEnded()).toBe(true);
  });

  it("is not checked at each event of another worker", () => {
    const shared = new SharedEventsAhead();
    const [large, working, ...workers] = createWorkers(shared);
    large?.take(bytesAheadTotalMax);
    for (const worker of workers) worker.take(eventBytes);
    let checks = 0;
    const waiting = createWorker(shared, () => ((checks += 1), 0));
    waiting.take(bytesAheadMax / 2);
    void waiting.wait();
    checks = 0;
    for (let events = 0; events < 100; events += 1) {
      working?.take(eventBytes);
      working?.free(eventBytes);
    }
    expect(checks).toBe(0);
  });
});
