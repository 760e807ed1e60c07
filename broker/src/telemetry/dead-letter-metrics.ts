import { Counter, type Registry } from "prom-client";
import { deadLetterChanges, type Metrics } from "../ports/metrics.ts";

export function createDeadLetterMetrics(registry: Registry): Metrics["deadLetters"] {
  const changes = new Counter({
    registers: [registry],
    labelNames: ["change"] as const,
    name: "stele_dead_letters_total",
    help: "Events that became dead letters, and dead letters that operators delivered or discarded.",
  });
  for (const change of deadLetterChanges) changes.inc({ change }, 0);
  return (change, count) => changes.inc({ change }, count);
}
