import { isRestored } from "../backup/restored.ts";
import type { Config } from "../config/settings.ts";
import type { Logger } from "../lib/logger.ts";
import type { DataFolder } from "../lib/system/data-folder.ts";

/** Settings of a start, and whether its folder is a restored copy. */
interface CopySettings {
  readonly config: Config;
  readonly isCopy: boolean;
}

interface CopyParts {
  /** Locked: before the lock, a restore to the folder may be running, and only marks the folder at its end. */
  readonly folder: DataFolder;
  readonly logger: Logger;
  /** Whether the folder counts as a restored copy, with the given settings; if left out, its mark decides. */
  readonly isRestored?: boolean | undefined;
}

/** Pauses the deliveries of a restored folder: its broker calls no receiver until an operator allows it. */
export function pauseCopy(config: Config, { folder, logger, isRestored: isCopy }: CopyParts): CopySettings {
  if (isCopy !== undefined) return { config, isCopy };
  if (!isRestored(folder.path("."))) return { config, isCopy: false };
  const remedy = "inspect it; `stele activate` lets it deliver from its next start on";
  logger.warn("data folder restored from a backup: deliveries are paused", { dataDir: config.dataDir, remedy });
  return { config: { ...config, deliveries: "paused" }, isCopy: true };
}
