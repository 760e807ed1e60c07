import { statSync } from "node:fs";
import { chainFile, storeFile } from "./folder.ts";
import type { Config } from "../config/settings.ts";
import type { ProcessTrouble } from "../engine/group-life.ts";
import type { CleanupStack } from "../lib/cleanup-stack.ts";
import type { Logger } from "../lib/logger.ts";
import type { SystemClock } from "../lib/system/clock.ts";
import { createDeferred } from "../lib/deferred.ts";
import type { DataFolder } from "../lib/system/data-folder.ts";
import { DescriptorWatch } from "../lib/system/descriptor-watch.ts";
import { DiskWatch } from "../lib/system/disk-watch.ts";
import { FileWatch } from "../lib/system/file-watch.ts";
import type { MetricsRegistry } from "../telemetry/metrics.ts";

/** How long a stop may look for a lost file, in milliseconds: a disk that hangs must not keep it from answering and logging. */
const findMsMax = 1_000;

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

interface FileWatchParts extends Pick<WatchParts, "folder" | "clock" | "cleanup"> {
  readonly hasChain: boolean;
  readonly hasStore: boolean;
}

/**
 * Watches the files of the chain and the store, and their logs, as far as they are in the folder. `lost` resolves if somebody takes one away. `findLost` says so
 * if this is one of the files: then nothing may be closed, since SQLite would delete the log at the path. After the loss of a log, a close saves its content.
 */
export async function watchFiles({ folder, clock, cleanup, hasChain, hasStore }: FileWatchParts) {
  const lost = createDeferred<Error>();
  const paths = [...(hasChain ? [chainFile(folder)] : []), ...(hasStore ? [storeFile(folder)] : [])];
  const files = new FileWatch({ files: paths, clock, onLost: (file) => lost.resolve(lostFile(file)) });
  const logs = new FileWatch({
    files: paths.map((file) => `${file}-wal`),
    clock,
    onLost: (file) => lost.resolve(lostLog(file)),
  });
  for (const watch of [files, logs]) {
    await watch.start();
    cleanup.add(() => watch.stop(), "watch of files");
  }
  const findLost = async (): Promise<Error | undefined> => {
    const late = new Promise<undefined>((resolve) => clock.after(findMsMax, () => resolve(undefined)));
    const file = await Promise.race([files.findLost(), late]);
    return file === undefined ? undefined : lostFile(file);
  };
  return { lost: lost.promise, findLost };
}

function lostFile(file: string): Error {
  return new Error(
    `${file} was moved, deleted or replaced while the broker had it open: the broker ends and changes no file. ` +
      "Move the whole data folder back, or restore it from a backup, then start again",
  );
}

function lostLog(file: string): Error {
  return new Error(
    `${file} was moved, deleted or replaced while the broker had it open: the broker stops, and saves what was in it. Start it again`,
  );
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
