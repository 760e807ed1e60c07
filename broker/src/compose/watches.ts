import { statSync } from "node:fs";
import { chainFile, storeFile } from "./folder.ts";
import type { Config } from "../config/settings.ts";
import type { ProcessTrouble } from "../engine/group-life.ts";
import type { CleanupStack } from "../lib/cleanup-stack.ts";
import { joinTexts } from "../lib/join-texts.ts";
import type { Logger } from "../lib/logger.ts";
import type { SystemClock } from "../lib/system/clock.ts";
import { createDeferred } from "../lib/deferred.ts";
import type { DataFolder } from "../lib/system/data-folder.ts";
import { DescriptorWatch } from "../lib/system/descriptor-watch.ts";
import { DiskWatch } from "../lib/system/disk-watch.ts";
import { FileWatch } from "../lib/system/file-watch.ts";
import { LostFileError, noteFile, type OpenFile } from "../lib/system/open-file.ts";
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
    return { reason, warning: joinTexts([warning, disk.warning]) };
  };
}

interface FileWatchParts extends Pick<WatchParts, "clock" | "cleanup"> {
  /** The files of the chain and the store, as far as they are in the folder. */
  readonly files: readonly OpenFile[];
}

/** Watches files and their logs. The result resolves if somebody takes one away. After the loss of a log, a stop can still save what was in it. */
export function watchFiles({ files, clock, cleanup }: FileWatchParts): Promise<Error> {
  const lost = createDeferred<Error>();
  const logs = files.flatMap(({ path }) => noteFile(`${path}-wal`) ?? []);
  const watches = [
    new FileWatch({ files, clock, onLost: (path) => lost.resolve(new LostFileError(path)) }),
    new FileWatch({ files: logs, clock, onLost: (path) => lost.resolve(lostLog(path)) }),
  ];
  for (const watch of watches) {
    watch.start();
    cleanup.add(() => watch.stop(), "watch of files");
  }
  return lost.promise;
}

function lostLog(file: string): Error {
  return new Error(
    `${file} was moved, deleted or replaced while the broker had it open: the broker stops, and tries to save what was in it. Start it again`,
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
