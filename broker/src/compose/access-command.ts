import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { auditCommand } from "./audit.ts";
import { createApiKeys } from "./access.ts";
import { refuseUnusable, requireFolder } from "./folder.ts";
import { isClustered } from "../config/derived.ts";
import { isActionFlag } from "../config/flags.ts";
import { loadConfig } from "../config/load-config.ts";
import type { Config } from "../config/settings.ts";
import { silentLogger } from "../lib/logger.ts";
import { type OutputFormat, takeFormat, toJsonText, WrongFormat } from "../lib/output-format.ts";
import { toEscapedJson, toPrintable } from "../lib/printable.ts";
import { refuseLinks } from "../lib/system/data-folder.ts";
import { giveToFolderOwner } from "../lib/system/file-owner.ts";
import { makeFolderSync } from "../lib/system/make-folder.ts";
import type { AuditLine } from "../ports/audit-log.ts";
import type { ApiKeys } from "../ports/api-keys.ts";
import { version } from "../version.ts";

/** Output of a command, and its exit code: 0 done, 1 failed, 2 wrong usage. */
export interface CommandOutcome {
  readonly exitCode: 0 | 1 | 2;
  readonly output: string;
  /** For the standard error. */
  readonly problem: string;
}

export interface CommandContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
}

/** The result of a command. */
export interface CommandDone {
  /** For people. */
  readonly output: string;
  /** For programs: an object, or a list of them. */
  readonly result: object;
  /** For the audit log. */
  readonly change?: Omit<AuditLine, "time" | "outcome">;
}

/** The arguments of a command. */
export interface CommandWords {
  readonly format: OutputFormat;
  /** The flags that are settings of the broker, with their values. */
  readonly settings: readonly string[];
  readonly positional: readonly string[];
  /** The values of the command's own flags. */
  readonly given: ReadonlyMap<string, readonly string[]>;
}

/** The command was used wrongly: exit code 2. */
export class UsageError extends Error {}

/** Maximum number of tries while another process changes keys or roles. */
const triesMax = 20;

/**
 * Splits the arguments. Every flag that is not in `ownFlags` is a setting of the broker, and has a value, unless it asks for an action, such as --check-config.
 * @throws WrongFormat for an unknown or missing output format.
 */
export function readWords(argv: readonly string[], ownFlags: readonly string[] = []): CommandWords {
  const { format, words } = takeFormat(argv);
  const given = new Map<string, string[]>(ownFlags.map((flag) => [flag, []]));
  const [settings, positional]: [string[], string[]] = [[], []];
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    const [flag = "", inline] = word.split(/=(.*)/s);
    if (!word.startsWith("--")) positional.push(word);
    else if (given.has(flag)) given.get(flag)?.push(inline ?? words[(index += 1)] ?? "");
    else {
      settings.push(word);
      const hasNext = inline === undefined && !isActionFlag(flag);
      if (hasNext) settings.push(...words.slice((index += 1), index + 1)); // Nothing for the last word: its value is missing.
    }
  }
  return { format, settings, positional, given };
}

/** @throws UsageError if there are more than `wordsMax` words. The message does not quote them: a word may be a key. */
export function refuseFurther(words: readonly string[], wordsMax = words.length): void {
  if (words.length > wordsMax) throw new UsageError("there are more arguments than this command takes; see --help");
}

export interface CommandCall extends CommandContext {
  /** The arguments after the action. */
  readonly words: readonly string[];
  /** Flags that are not settings of the broker. */
  readonly ownFlags: readonly string[];
  /** Whether to create a missing data folder: keys and roles may be made before the first start of a broker. */
  readonly createsFolder: boolean;
}

/** Opens the keys and roles of the broker with these settings, and runs `task` on them. Never throws. */
export async function runOnKeys(
  name: string,
  { words, ownFlags, createsFolder, env, now }: CommandCall,
  task: (keys: ApiKeys, context: { readonly config: Config; readonly read: CommandWords }) => Promise<CommandDone>,
): Promise<CommandOutcome> {
  let newFile: string | undefined;
  try {
    const read = readWords(words, ownFlags);
    const loaded = loadConfig({ env, argv: read.settings, readFile: (path) => readFileSync(path, "utf8"), version });
    if (loaded.status === "refused") throw new UsageError(loaded.problems.join("\n"));
    if (loaded.status !== "loaded") return { exitCode: 0, output: loaded.output, problem: "" };
    const { config } = loaded;
    const file = resolve(config.dataDir, "keys.sqlite");
    if (createsFolder && !isClustered(config) && !existsSync(file)) newFile = file;
    const { output, result, change } = await onKeys(config, createsFolder, (keys) => task(keys, { config, read }));
    const problem = change === undefined ? "" : auditCommand(config, { ...change, time: now() });
    return {
      exitCode: 0,
      output: read.format === "table" ? output : toEscapedJson(toJsonText(read.format, result)),
      problem: noteOf(name, newFile) + problem,
    };
  } catch (error) {
    const isMisused = error instanceof UsageError || error instanceof WrongFormat;
    const text = error instanceof Error ? error.message : String(error);
    const reason = isMisused ? text : toPrintable(text); // PostgreSQL may have written a part of it. Problems of settings have a line each.
    return {
      exitCode: isMisused ? 2 : 1,
      output: "",
      problem: `${noteOf(name, newFile)}stele ${name}: ${reason}\n`,
    };
  }
}

/** Names a file that this command has created. Also after a refusal: a second try in the wrong folder would find the file, and say nothing. */
function noteOf(name: string, newFile: string | undefined): string {
  if (newFile === undefined || !existsSync(newFile)) return "";
  return `stele ${name}: created ${newFile}, which only a broker with this data folder reads\n`;
}

async function onKeys<Result>(
  config: Config,
  createsFolder: boolean,
  task: (keys: ApiKeys) => Promise<Result>,
): Promise<Result> {
  const file = isClustered(config) ? undefined : resolve(config.dataDir, "keys.sqlite");
  if (file !== undefined) {
    const folder = resolve(config.dataDir);
    if (createsFolder) makeFolderSync(folder);
    else requireFolder(config);
    refuseLinks(folder);
    refuseUnusable(folder);
  }
  const createsFile = file !== undefined && !existsSync(file);
  const keys = await createApiKeys(config, { logger: silentLogger });
  await retried(() => keys.start());
  try {
    if (createsFile) giveToFolderOwner(file);
    return await retried(() => task(keys));
  } finally {
    await keys.stop();
  }
}

/** Repeats the task if the database is busy: SQLite refuses a process while another one writes. */
async function retried<Result>(task: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await task();
    } catch (error) {
      const isBusy = error instanceof Error && /locked|busy/i.test(error.message);
      if (!isBusy || tries >= triesMax) throw error;
    }
  }
}
