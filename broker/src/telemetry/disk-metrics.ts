import { Gauge, type Registry } from "prom-client";

/** Measures the disk of the data folder. Each scrape calls both functions. */
export interface DiskGauge {
  /** Undefined if the system does not tell. */
  readonly freeBytes: () => number | undefined;
  /** Bytes by part of the data. */
  readonly sizes: () => ReadonlyMap<string, number>;
}

export function watchDisk(registry: Registry, { freeBytes, sizes }: DiskGauge): void {
  const free = new Gauge({
    registers: [],
    name: "stele_disk_free_bytes",
    help: "Free space on the disk of the data folder, for this user.",
    collect() {
      this.remove();
      const bytes = freeBytes();
      if (bytes !== undefined) this.set(bytes);
    },
  });
  const data = new Gauge({
    registers: [],
    labelNames: ["part"] as const,
    name: "stele_data_bytes",
    help: "Size of the files in the data folder: the embedded chain, the store, and the write-ahead log of each.",
    collect() {
      this.reset();
      for (const [part, bytes] of sizes()) this.set({ part }, bytes);
    },
  });
  registry.registerMetric(free);
  registry.registerMetric(data);
}
