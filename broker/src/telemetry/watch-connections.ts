import { Gauge, type Registry } from "prom-client";

export interface WatchedConnections {
  readonly name: string;
  readonly protocol: string;
  /** Called on each scrape. */
  readonly read: () => number;
}

/** Exposes how many connections of a protocol are open. */
export function watchConnections(registry: Registry, { name, protocol, read }: WatchedConnections): void {
  const connections = new Gauge({
    registers: [],
    name,
    help: `Open ${protocol} connections, over TCP, TLS and WebSocket.`,
    collect() {
      this.set(read());
    },
  });
  registry.registerMetric(connections);
}
