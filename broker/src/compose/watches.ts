import { statSync } from "node:fs";
import { chainFile, storeFile } from "./folder.ts";
import type { Config } from "../config/settings.ts";
import type { ProcessTrouble } from "../engine/group-life.ts";
import type { CleanupStack } from "../lib/cleanup-stack.ts";
import type { Logger } from "../lib/logger.ts";
import type { SystemClock } from "../lib/system/clock.ts";
import type { DataFolder } from "../lib/system/data-folder.ts";
import { DescriptorWatch } from "../lib/system/descriptor-watch.ts";
import { DiskWatch } from "../lib/system/disk-watch.ts";
import type { MetricsRegistry } from "../telemetry/metrics.ts";

interface WatchParts {
  readonly folder: DataFolder;
  readonly clock: SystemClock;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  readonly cleanup: CleanupStack;
}

/** Watches file descriptors and disk space until `cleanup` stops it. Returns a function that reads their trouble, for health. */
export async function startWatches(config: Config, parts: WatchParts): Promise<() => ProcessTrouble> {
  const { folder, clock, logger, metrics, cleanup } = parts;
  const descriptors = new DescriptorWatch({ clock, logger });
  descriptors.start();
  cleanup.add(() => descriptors.stop(), "watch of descriptors");
  const disk = new DiskWatch({ folder: folder.path("."), warnBytes: config.diskFreeWarnBytes, clock, logger });
  await disk.start();
  cleanup.add(() => disk.stop(), "watch of the disk");
  metrics.watchDisk({ freeBytes: () => disk.freeBytes, sizes: () => sizesOf(folder) });
  return () => {
    const { reason, warning } = descriptors.trouble;
    const warnings = [warning, disk.warning].filter((text) => text !== undefined);
    return { reason, warning: warnings.length === 0 ? undefined : warnings.join("; ") };
  };
}

/** Bytes of the chain, the store and their logs, as far as they are files in the folder. */
function sizesOf(folder: DataFolder): ReadonlyMap<string, number> {
  const files = { chain: chainFile(folder), store: storeFile(folder) };
  const parts = Object.entries(files).flatMap(([part, file]) => [
    [part, file] as const,
    [`${part}_log`, `${file}-wal`] as const,
  ]);
  const sizes = parts.map(([part, file]) => [part, statSync(file, { throwIfNoEntry: false })?.size] as const);
  return new Map(sizes.flatMap(([part, size]) => (size === undefined ? [] : [[part, size] as const])));
}
