import { Counter, Gauge, type Registry } from "prom-client";

/** Metrics of the copies of events that the store has dropped. */
export function createRetentionMetrics(registry: Registry) {
  const common = { registers: [registry], labelNames: ["group"] as const };
  const batches = new Counter({
    ...common,
    name: "stele_batches_dropped_total",
    help: "Batches whose events this node dropped from the store because they were older than storeRetentionMs.",
  });
  const bytes = new Counter({
    ...common,
    name: "stele_batches_dropped_bytes_total",
    help: "Bytes of the events that this node dropped from the store.",
  });
  const block = new Gauge({
    ...common,
    name: "stele_dropped_block",
    help: "The store has dropped its copies of events up to this block; the chain still has the events. 0 until this process knows of a dropped copy.",
  });
  return {
    beginAtZero(group: string): void {
      for (const counter of [batches, bytes]) counter.inc({ group }, 0);
      block.set({ group }, 0);
    },
    note(group: string, dropped: { readonly batches: number; readonly bytes: number; readonly block: number }): void {
      batches.inc({ group }, dropped.batches);
      bytes.inc({ group }, dropped.bytes);
      block.set({ group }, dropped.block);
    },
  };
}
