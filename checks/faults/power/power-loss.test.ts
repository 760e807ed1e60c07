import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BrokerProcess } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { createRandom, seedsOf } from "../../harness/random.ts";
import { startReceiver } from "../../harness/receiver.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";
import { type Judged, judge } from "../support/judge.ts";
import { Disk, type Loss } from "../support/power/disk.ts";
import { type LoadFacts, promisedAt } from "../support/power/promised-at.ts";
import { hasStrace, Recorder, straceTitle } from "../support/power/recorder.ts";
import { PublishLoad } from "../support/publish-load.ts";

const topics = ["power/a", "power/b"];
const eventsPerRun = 40;
/** strace slows the broker down, and so does a busy machine. */
const loadTimeoutMs = 90_000;
const seeds = seedsOf(
  "CHECKS_POWER_SEEDS",
  Array.from({ length: 25 }, (_, index) => index + 1),
);
/** If set, a failed case saves its disk to this folder, as it was before the start. */
const { CHECKS_KEEP: keepDir } = process.env;
/** Number of power losses on a disk that ignores syncs. Even such a disk keeps every change of a file in one of seven cases. */
const controls = 8;
/** The test must notice a loss in at least this many of the controls. */
const controlsSeenMin = 4;

/** Records three runs of a broker on one data folder: the first ends with a kill, the others with a stop. */
class RecordedLife implements Disposable {
  readonly recorder = new Recorder();
  readonly #load = new PublishLoad(topics, { publishersPerTopic: 2 });
  #loaded: LoadFacts | undefined;
  #disk: Disk | undefined;

  async record(): Promise<void> {
    await using receiver = await startReceiver();
    let subscriptionId = "";
    await this.recorder.run(async (broker) => {
      await using client = new Client(broker.url);
      for (const topic of topics) await client.open(topic);
      subscriptionId = await client.subscribe({ topic: "#", url: receiver.url });
      await this.#publish(broker);
      await broker.kill();
    });
    for (let run = 2; run <= 3; run += 1) {
      await this.recorder.run(async (broker) => {
        await this.#publish(broker);
        await broker.stop();
      });
    }
    const { acknowledged, sent } = this.#load;
    this.#loaded = { topics, subscriptionId, acknowledged, sent };
    this.#disk = new Disk(this.recorder.calls, this.recorder.dataDir);
  }

  /** What the broker had promised by the end, according to the recorded bytes. */
  get promised() {
    if (this.#loaded === undefined) throw new Error("nothing is recorded");
    return promisedAt(Number.POSITIVE_INFINITY, this.recorder.calls, this.#loaded);
  }

  get acknowledgedCount(): number {
    return this.#load.acknowledged.size;
  }

  /** Loses power at a moment that the seed chooses, and judges a start on what the disk then holds. `disk` is the way in which it treats syncs. */
  async lose(seed: number, disk: Loss["disk"] = "honest"): Promise<Judged> {
    if (this.#loaded === undefined || this.#disk === undefined) throw new Error("nothing is recorded");
    const random = createRandom(seed);
    const { calls } = this.recorder;
    const at = random.pick(calls).startedAt;
    using folder = createTempFolder();
    this.#disk.rebuild(folder.path, { at, random, disk });
    const before = filesOf(folder.path);
    const judged = await judge(folder.path, promisedAt(at, calls, this.#loaded));
    if (disk === "honest" && judged.verdict !== losslessVerdict(judged)) keep(before, seed);
    return judged;
  }

  /** The files that the recorded calls make on a disk that loses nothing. */
  lossless(): ReadonlyMap<string, Buffer> {
    using folder = createTempFolder();
    this.#disk?.rebuild(folder.path, { at: Number.POSITIVE_INFINITY, random: createRandom(1), disk: "loses nothing" });
    return filesOf(folder.path);
  }

  /** The files that the brokers left. */
  files(): ReadonlyMap<string, Buffer> {
    return filesOf(this.recorder.dataDir);
  }

  [Symbol.dispose](): void {
    this.recorder[Symbol.dispose]();
  }

  async #publish(broker: BrokerProcess): Promise<void> {
    const goal = this.#load.acknowledged.size + eventsPerRun;
    this.#load.start(broker.url);
    await until("the load is acknowledged", () => this.#load.acknowledged.size >= goal, { timeoutMs: loadTimeoutMs });
    await this.#load.stop();
  }
}

/**
 * The expected verdict of a start that lost nothing acknowledged. The store's write-ahead log and the chain's head file are not synced at each
 * commit, so a power loss may damage them. The broker then logs the damage, and the chain still has everything.
 */
function losslessVerdict({ said }: Judged): Judged["verdict"] {
  return /store's log damaged|head file damaged/.test(said) ? "healed" : "no effect";
}

function keep(files: ReadonlyMap<string, Buffer>, seed: number): void {
  if (keepDir === undefined) return;
  const folder = join(keepDir, `power-${process.pid}-${seed}`);
  mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
}

function filesOf(folder: string): ReadonlyMap<string, Buffer> {
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}

describe.runIf(hasStrace)(`a power loss under load${straceTitle}`, () => {
  const life = new RecordedLife();
  beforeAll(() => life.record());
  afterAll(() => life[Symbol.dispose]());

  it("the recording under test has all acknowledged events and some deliveries", () => {
    expect(life.acknowledgedCount).toBeGreaterThanOrEqual(3 * eventsPerRun);
    expect(life.promised.events).toHaveLength(life.acknowledgedCount);
    expect(life.promised.delivered.size).toBeGreaterThan(0);
  });

  it("the recorded calls reproduce the broker's files byte for byte", () => {
    expect(life.lossless()).toEqual(life.files());
  });

  it.each(seeds)("a power loss loses nothing that was acknowledged (seed %i)", async (seed) => {
    const judged = await life.lose(seed);
    expect(judged, judged.said).toMatchObject({ verdict: losslessVerdict(judged) });
  });

  it("a power loss of a disk that ignores syncs loses something, and this test notices (control)", async () => {
    const judged: Judged[] = [];
    for (let seed = 1; seed <= controls; seed += 1) judged.push(await life.lose(seed, "ignores syncs"));
    const seen = judged.filter((one) => one.verdict !== losslessVerdict(one)).map(({ verdict }) => verdict);
    expect(seen.length, seen.join("; ")).toBeGreaterThanOrEqual(controlsSeenMin);
  });
});
