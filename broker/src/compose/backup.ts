import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { EmbeddedChain } from "@stele/chain";
import { askBroker, isInUse } from "../backup/ask-broker.ts";
import { BackupService } from "../backup/backup-service.ts";
import { makeBackup } from "../backup/make-backup.ts";
import type { Manifest } from "../backup/manifest.ts";
import { restoreBackup } from "../backup/restore-backup.ts";
import { activate } from "../backup/restored.ts";
import { readWords, refuseFurther, UsageError } from "./access-command.ts";
import { chainFile, checkDataFolder, keysFile, requireFolder } from "./folder.ts";
import { type GroupConfig, groupsOf, isClustered } from "../config/derived.ts";
import { loadConfig } from "../config/load-config.ts";
import type { Config } from "../config/settings.ts";
import type { CleanupStack } from "../lib/cleanup-stack.ts";
import type { Logger } from "../lib/logger.ts";
import { toJsonText, WrongFormat } from "../lib/output-format.ts";
import type { Timer } from "../lib/pause.ts";
import { toEscaped, toEscapedJson, toPrintable } from "../lib/printable.ts";
import { type DataFolder, openDataFolder } from "../lib/system/data-folder.ts";
import type { Clock } from "../ports/clock.ts";
import type { HeldFile } from "../store/sql/schema.ts";
import { StoreError } from "../store/sql/store-error.ts";
import { holdShared } from "../store/sql/sqlite/hold-shared.ts";
import { createLogger } from "../telemetry/logger.ts";
import { version } from "../version.ts";

/** Output of a command, and its exit code: 0 done, 1 failed, 2 wrong usage. */
export interface BackupOutcome {
  readonly exitCode: 0 | 1 | 2;
  readonly output: string;
  /** For the standard error. */
  readonly problem: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const formHelp = `
"-o table" (the default), "-o json" and "-o ndjson" choose the format of the result.
`;
const usages = {
  backup: `Usage: stele backup DIR [settings of the broker]

Copies the chain, the store and the keys of a broker, all of one moment, to the new folder DIR. backup.json has the digest of each file. The broker
may run, and keeps serving meanwhile. DIR contains keys in clear text: protect it like the data folder.

Give the command the broker's settings, such as --data-dir. Run it on the broker's machine, as the broker's user.
${formHelp}
Examples:
  stele backup /backups/2026-11-23
  stele backup /backups/today --data-dir /var/lib/stele -o json
`,
  restore: `Usage: stele restore DIR [settings of the broker]

Copies a backup that \`stele backup\` made to the new data folder that --data-dir names, and compares each file with its digest. A broker that starts
there calls no receiver until you run \`stele activate\`: inspect it first.
${formHelp}
Examples:
  stele restore /backups/2026-11-23 --data-dir ./restored
`,
  activate: `Usage: stele activate [settings of the broker]

Lets the broker of a restored data folder call receivers, from its next start on. Make sure first that the original broker no longer runs: both would
deliver the same events, and sign with the same key.
${formHelp}
Examples:
  stele activate --data-dir ./restored
`,
} as const;

export type BackupCommand = keyof typeof usages;

/** Pause before the next try to hold the chain's file, if a reader still needs its log. A reader keeps its snapshot for about a second. */
const holdAgainMs = 100;
/** Maximum number of tries to hold the chain's file for a backup. */
const holdsMax = 300;

/** Unlike the system clock's timers, these keep the process alive. */
const commandTimer: Timer = {
  after: (delayMs, action) => {
    const timer = setTimeout(action, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Runs a command with the arguments after its name. Never throws. */
export async function runBackupCommand(
  command: BackupCommand,
  argv: readonly string[],
  { env, log }: { readonly env: Environment; readonly log: (line: string) => void },
): Promise<BackupOutcome> {
  if (argv.some((word) => word === "--help" || word === "-h")) return done(usages[command]);
  try {
    const { format, settings, positional } = readWords(argv);
    const [target = "", ...further] = command === "activate" ? ["", ...positional] : positional;
    if (command !== "activate" && (target === "" || target.startsWith("-"))) {
      return { exitCode: 2, output: "", problem: usages[command] };
    }
    refuseFurther(further, 0);
    const loaded = loadConfig({ env, argv: settings, readFile: (path) => readFileSync(path, "utf8"), version });
    if (loaded.status === "refused") return failed(command, loaded.problems.join("\n"), 2);
    if (loaded.status !== "loaded") return done(loaded.output);
    const { logLevel: level, logFormat } = loaded.config;
    const logger = createLogger({ level, format: logFormat, destination: { write: log } });
    const { text, result } = await run[command](loaded.config, { target, logger });
    return done(format === "table" ? text : toEscapedJson(toJsonText(format, result)));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    if (error instanceof WrongFormat || error instanceof UsageError) return failed(command, text, 2);
    return failed(command, toPrintable(text), 1); // The system, a backup or the broker's answer may have written a part of it.
  }
}

/** What a command did, for people and for programs. */
interface Done {
  readonly text: string;
  readonly result: object;
}

interface RunOptions {
  readonly target: string;
  readonly logger: Logger;
}

const run: Readonly<Record<BackupCommand, (config: Config, options: RunOptions) => Promise<Done>>> = {
  backup: async (config, { target, logger }) => {
    const folder = requireFolder(config);
    const path = resolve(target);
    const manifest = isInUse(folder)
      ? await askBroker(folder, { target: path, timer: commandTimer })
      : await backUpStopped(config, { target: path, logger });
    return {
      text: `${describe(manifest)} in ${path}\n${noteMissing(config)}`,
      result: toResult(manifest, { folder: path, config }),
    };
  },
  restore: async (config, { target: from }) => {
    const manifest = await restoreBackup(from, config.dataDir, () => Date.now());
    const next = "Its broker calls no receiver until you run `stele activate`.";
    const folder = resolve(config.dataDir);
    return {
      text: `${describe(manifest)} restored to ${folder}\n${next}\n${noteMissing(config)}`,
      result: toResult(manifest, { folder, config }),
    };
  },
  activate: async (config) => {
    const folder = requireFolder(config);
    const isActivated = activate(folder) !== undefined;
    const text = isActivated
      ? "the broker delivers from its next start on: restart it if it runs\n"
      : `${folder} is not a restored folder, or was activated before\n`;
    return { text, result: { folder, isActivated } };
  },
};

function toResult(
  { madeAt, version: madeBy, files }: Manifest,
  { folder, config }: { readonly folder: string; readonly config: Config },
): object {
  return { folder, madeAt, version: madeBy, files, missing: listMissing(config) };
}

/**
 * Backs up a folder that no broker uses, and locks it meanwhile, so that none starts. Refuses a folder that a start would refuse: otherwise nobody would
 * notice before they need the backup.
 */
async function backUpStopped(config: Config, { target, logger }: RunOptions): Promise<Manifest> {
  const held = openDataFolder(config.dataDir);
  try {
    await checkDataFolder(held, config, { logger, needsData: true });
    const holds = { data: undefined, keys: () => holdKeys(held).catch(unlessDamaged) };
    return await makeBackup(target, { folder: held.path("."), holds, version, now: () => Date.now() });
  } finally {
    held.release();
  }
}

function describe({ files, madeAt }: Manifest): string {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const names = files.map(({ name }) => toEscaped(name)).join(", "); // Somebody else may have made the backup.
  return `backup of ${madeAt}: ${names}, ${bytes} bytes`;
}

/** Files outside the data folder with keys of signers and subscriptions, or with passwords of keys, which the backup lacks. */
function listMissing(config: Config): readonly string[] {
  const keys = groupsOf(config).flatMap(({ signer }) => filesOf(signer));
  return [...(config.secretKeyFile === "" ? [] : [config.secretKeyFile]), ...keys];
}

function noteMissing(config: Config): string {
  const outside = listMissing(config);
  const files = outside.map((file) => `not in the backup: ${file}; keep a copy of it\n`).join("");
  return isClustered(config) ? `${files}not in the backup: the database; see docs/cluster.md#backup\n` : files;
}

function filesOf(signer: GroupConfig["signer"]): readonly string[] {
  if (signer === undefined || "privateKeyEnv" in signer) return [];
  if ("privateKeyFile" in signer) return [signer.privateKeyFile];
  return "passwordFile" in signer ? [signer.keystoreFile, signer.passwordFile] : [signer.keystoreFile];
}

export interface BackupParts {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly cleanup: CleanupStack;
  readonly chain: EmbeddedChain | undefined;
  /** Returns the open store's file; undefined if the store is not a file in the folder. */
  readonly storeFile: () => HeldFile | undefined;
}

/** Serves `stele backup` as long as the broker runs. */
export function serveBackups({ folder, clock, logger, cleanup, ...parts }: BackupParts): void {
  const root = folder.path(".");
  const service = new BackupService({
    folder: root,
    clock,
    logger,
    makeBackup: (target, signal) => {
      const holds = { data: () => holdData({ folder, ...parts }, signal), keys: () => holdKeys(folder) };
      return makeBackup(target, { folder: root, holds, version, now: () => clock.now(), signal });
    },
  });
  cleanup.add(() => service.stop(), "backups");
  service.start();
}

type HeldParts = Pick<BackupParts, "folder" | "chain" | "storeFile">;

/**
 * Holds the store first, then the chain while nothing is written to the store. So in the copy, the index is never ahead of the chain, and the store has
 * the key of every publish that is on the chain.
 */
async function holdData({ folder, chain, storeFile }: HeldParts, signal: AbortSignal): Promise<() => Promise<void>> {
  const store = storeFile();
  const holdChain = async (): Promise<boolean> => (await chain?.holdFile()) ?? true;
  const isHeld = await untilTrue(() => (store === undefined ? holdChain() : store.hold(holdChain)), signal);
  if (!isHeld) throw new Error(`${chainFile(folder)} cannot be copied while readers need its log: try again`);
  return async () => {
    chain?.releaseFile();
    await store?.release();
  };
}

async function holdKeys(folder: DataFolder): Promise<() => Promise<void>> {
  const file = keysFile(folder);
  const release = existsSync(file) ? await holdShared(file) : undefined;
  return async () => release?.();
}

/** Damaged keys need no hold, because no command can change them. The backup copies them as they are: a part may be recoverable. */
function unlessDamaged(error: unknown): () => Promise<void> {
  if (!(error instanceof StoreError && error.fault === "corrupt")) throw error;
  return async () => {};
}

async function untilTrue(attempt: () => Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  for (let tries = 1; !(await attempt()); tries += 1) {
    if (tries === holdsMax) return false;
    await pause(holdAgainMs, undefined, { signal });
  }
  return true;
}

function done(output: string): BackupOutcome {
  return { exitCode: 0, output, problem: "" };
}

function failed(command: BackupCommand, reason: string, exitCode: 1 | 2): BackupOutcome {
  return { exitCode, output: "", problem: `stele ${command}: ${reason}\n` };
}
