import { Counter, Gauge, type Registry } from "prom-client";

/** Metrics of tails. */
export interface TailCounters {
  tailEnded(reason: string): void;
  watchTails(read: () => number): void;
}

/** Why the broker ends tails. */
const reasons = ["taken-over", "stopping", "failed", "stale", "removed", "refused", "stalled"];

export function createTailMetrics(registry: Registry): TailCounters {
  const ends = new Counter({
    registers: [registry],
    labelNames: ["reason"] as const,
    name: "stele_tails_ended_total",
    help: "Tails that the broker ended, by reason. Tails that their clients ended do not count.",
  });
  for (const reason of reasons) ends.inc({ reason }, 0);
  return {
    tailEnded: (reason) => ends.inc({ reason }),
    watchTails: (read) => watchTails(registry, read),
  };
}

function watchTails(registry: Registry, read: () => number): void {
  const tails = new Gauge({
    registers: [],
    name: "stele_tail_connections",
    help: "Open tails.",
    collect() {
      this.set(read());
    },
  });
  registry.registerMetric(tails);
}
