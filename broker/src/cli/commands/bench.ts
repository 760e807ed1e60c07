import { randomBytes, randomUUID } from "node:crypto";
import { SteleError } from "@stele/client";
import type { Command } from "commander";
import { describeError } from "../describe-error.ts";
import { type CliIo, CommandFailed, UsageError } from "../io.ts";
import type { Column } from "../output.ts";
import { parseCount } from "../parse.ts";
import { contentBytesMax } from "../stdin.ts";
import { define } from "./define.ts";

interface BenchFlags {
  readonly events: number;
  readonly concurrency: number;
  readonly bytes: number;
}

interface Report {
  readonly topic: string;
  readonly events: number;
  readonly failed: number;
  readonly eventsPerSecond: number;
  /** Null if no event was published. */
  readonly latencyMs: Readonly<Record<Percentile, number | null>>;
}

const percentiles = ["p50", "p90", "p99", "max"] as const;
type Percentile = (typeof percentiles)[number];

/** Maximum of `--concurrency`: publishes of one `stele bench` that run at once. */
const concurrencyMax = 1_000;
const progressMs = 1_000;

const fields: readonly Column<Report>[] = [
  { title: "TOPIC", of: ({ topic }) => topic },
  { title: "EVENTS", of: ({ events }) => events },
  { title: "FAILED", of: ({ failed }) => failed },
  { title: "EVENTS/S", of: ({ eventsPerSecond }) => eventsPerSecond },
  ...percentiles.map(
    (name): Column<Report> => ({
      title: `${name.toUpperCase()} MS`,
      of: ({ latencyMs }) => latencyMs[name] ?? undefined,
    }),
  ),
];

export function defineBench(program: Command, io: CliIo): void {
  define<BenchFlags>(program, io, {
    usage: "bench [topic]",
    summary: "Measures how fast the broker commits events. The events stay on its chain for ever.",
    examples: ["stele bench", "stele bench load --events 10000 --concurrency 64 --bytes 512 -o json"],
    flags: (command) =>
      command
        .option("-n, --events <number>", "events to publish", parseCount, 1_000)
        .option("--concurrency <number>", "publishes at once", parseCount, 16)
        .option("--bytes <number>", "bytes of each event", parseCount, 256),
    run: async ({ stele, output, signal }, { words: [topic = `bench/${randomUUID()}`], flags }) => {
      const { events, concurrency, bytes } = flags;
      if (bytes > contentBytesMax) throw new UsageError(`--bytes must be at most ${contentBytesMax}`);
      if (concurrency > concurrencyMax) throw new UsageError(`--concurrency must be at most ${concurrencyMax}`);
      await stele.open(topic, { signal });
      const content = randomBytes(bytes);
      const run = new Run(events, () => stele.publish(topic, content, { signal }));
      const timer = setInterval(() => output.note(run.progress()), progressMs);
      await run.all(concurrency).finally(() => clearInterval(timer));
      await output.record({ topic, ...run.report() }, fields);
      run.check();
    },
  });
}

/** Publishes a number of events with several workers; each worker publishes one event at a time. */
class Run {
  #failed = 0;
  #firstFailure: SteleError | undefined;
  readonly #events: number;
  readonly #publish: () => Promise<unknown>;
  readonly #latenciesMs: number[] = [];
  #begun = 0;
  #tookMs = 0;

  constructor(events: number, publish: () => Promise<unknown>) {
    this.#events = events;
    this.#publish = publish;
  }

  progress(): string {
    const failures = this.#failed === 0 ? "" : `, and ${this.#failed} failures`;
    return `${this.#latenciesMs.length} of ${this.#events} events${failures}`;
  }

  /** @throws CommandFailed with the first failure, if there is one. */
  check(): void {
    if (this.#failed === 0) return;
    const reason = describeError(this.#firstFailure);
    throw new CommandFailed(`${this.#failed} of ${this.#events} publishes failed, the first one: ${reason}`);
  }

  async all(workers: number): Promise<void> {
    const begunAt = performance.now();
    await Promise.all(Array.from({ length: workers }, () => this.#work()));
    this.#tookMs = performance.now() - begunAt;
  }

  report(): Omit<Report, "topic"> {
    const sorted = this.#latenciesMs.toSorted((left, right) => left - right);
    const at = (share: number): number | null => rounded(sorted[Math.ceil(share * sorted.length) - 1]);
    return {
      events: this.#events,
      failed: this.#failed,
      eventsPerSecond: Math.round((sorted.length / this.#tookMs) * 1_000),
      latencyMs: { p50: at(0.5), p90: at(0.9), p99: at(0.99), max: at(1) },
    };
  }

  async #work(): Promise<void> {
    while (this.#begun < this.#events) {
      this.#begun += 1;
      const begunAt = performance.now();
      try {
        await this.#publish();
        this.#latenciesMs.push(performance.now() - begunAt);
      } catch (error) {
        if (!(error instanceof SteleError)) throw error;
        this.#failed += 1;
        this.#firstFailure ??= error;
      }
    }
  }
}

function rounded(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms * 10) / 10;
}
