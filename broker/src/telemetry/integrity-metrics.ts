import { Counter, Gauge, type Registry } from "prom-client";

/** Metrics of damage in the store and in the chain's file, and of the scrub's progress. */
export function createIntegrityMetrics(registry: Registry) {
  const registers = [registry];
  const group = ["group"] as const;
  const metrics = {
    damaged: new Counter({
      registers,
      labelNames: ["group", "outcome"] as const,
      name: "stele_index_damaged_total",
      help: "Damaged batches in the store, by whether the broker could repair them from the chain.",
    }),
    scrubbed: new Counter({
      registers,
      labelNames: group,
      name: "stele_batches_scrubbed_total",
      help: "Batches in the store that the scrub has read, to find damage.",
    }),
    scrubbedBlock: new Gauge({
      registers,
      labelNames: group,
      name: "stele_scrubbed_block",
      help: "Block that the current scrub round of the index has reached.",
    }),
    chainDamaged: new Counter({
      registers,
      labelNames: ["group", "outcome"] as const,
      name: "stele_chain_damaged_total",
      help: "Damaged blocks in the embedded chain's file, by whether the broker could repair them from the index.",
    }),
    chainScrubbed: new Counter({
      registers,
      labelNames: group,
      name: "stele_chain_blocks_scrubbed_total",
      help: "Blocks in the embedded chain's file that the scrub has read, to find damage.",
    }),
    chainScrubbedBlock: new Gauge({
      registers,
      labelNames: group,
      name: "stele_chain_scrubbed_block",
      help: "Block that the current scrub round of the embedded chain's file has reached.",
    }),
    scrubEnded: new Gauge({
      registers,
      labelNames: ["group", "part"] as const,
      name: "stele_scrub_ended_timestamp_seconds",
      help: "End of the last complete scrub round of a group's index, or of its chain's file.",
    }),
  };
  const beginAtZero = (groupId: string): void => {
    for (const counter of [metrics.damaged, metrics.chainDamaged]) {
      for (const outcome of ["mended", "unmended"]) counter.inc({ group: groupId, outcome }, 0);
    }
    for (const counter of [metrics.scrubbed, metrics.chainScrubbed]) counter.inc({ group: groupId }, 0);
  };
  return { ...metrics, beginAtZero };
}
