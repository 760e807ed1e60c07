import { Counter, Gauge, type Registry } from "prom-client";

/** What is damaged in the store and in the chain's file, and how far it was looked for. */
export function createIntegrityMetrics(registry: Registry) {
  const registers = [registry];
  const group = ["group"] as const;
  const metrics = {
    damaged: new Counter({
      registers,
      labelNames: ["group", "outcome"] as const,
      name: "stele_index_damaged_total",
      help: "Batches in the store that were not as they were written, by whether the chain could mend them.",
    }),
    scrubbed: new Counter({
      registers,
      labelNames: group,
      name: "stele_batches_scrubbed_total",
      help: "Batches in the store that were read only to find out whether they are damaged.",
    }),
    scrubbedBlock: new Gauge({
      registers,
      labelNames: group,
      name: "stele_scrubbed_block",
      help: "Block up to which the present round of that has come.",
    }),
    chainDamaged: new Counter({
      registers,
      labelNames: ["group", "outcome"] as const,
      name: "stele_chain_damaged_total",
      help: "Blocks in the embedded chain's file that were not as they were written, by whether the index could mend them.",
    }),
    chainScrubbed: new Counter({
      registers,
      labelNames: group,
      name: "stele_chain_blocks_scrubbed_total",
      help: "Blocks in the embedded chain's file that were read only to find out whether they are damaged.",
    }),
    chainScrubbedBlock: new Gauge({
      registers,
      labelNames: group,
      name: "stele_chain_scrubbed_block",
      help: "Block up to which the present round of that has come.",
    }),
    scrubEnded: new Gauge({
      registers,
      labelNames: ["group", "part"] as const,
      name: "stele_scrub_ended_timestamp_seconds",
      help: "When the last round ended that went through all of a group's index, or of its chain's file.",
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
