import { Gauge, type Registry } from "prom-client";

/** Exposes the open connections of each HTTP listener. The caller adds a reader per listener to the returned map. */
export function createHttpConnections(registry: Registry): Map<string, () => number> {
  const readers = new Map<string, () => number>();
  const gauge = new Gauge({
    registers: [],
    labelNames: ["listener"] as const,
    name: "stele_http_connections",
    help: "Open connections of each HTTP listener, including WebSockets and tails.",
    collect() {
      for (const [listener, read] of readers) this.set({ listener }, read());
    },
  });
  registry.registerMetric(gauge);
  return readers;
}
