import { Gauge, type Registry } from "prom-client";

/** Shows the open connections of each listener of HTTP in the map. */
export function createHttpConnections(registry: Registry): Map<string, () => number> {
  const readers = new Map<string, () => number>();
  const gauge = new Gauge({
    registers: [],
    labelNames: ["listener"] as const,
    name: "stele_http_connections",
    help: "Open connections of each HTTP listener, with WebSockets and tails.",
    collect() {
      for (const [listener, read] of readers) this.set({ listener }, read());
    },
  });
  registry.registerMetric(gauge);
  return readers;
}
