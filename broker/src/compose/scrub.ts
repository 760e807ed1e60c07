import { readFileSync } from "node:fs";
import { startEngine } from "./start-server.ts";
import { requireFolder } from "./folder.ts";
import { isClustered } from "../config/derived.ts";
import { loadConfig, type Secrets } from "../config/load-config.ts";
import type { Config } from "../config/settings.ts";
import type { ScrubReport } from "../engine/integrity/scrubber.ts";
import { CleanupStack } from "../lib/cleanup-stack.ts";
import { joinTexts } from "../lib/join-texts.ts";
import type { Logger } from "../lib/logger.ts";
import { takeFormat, toJsonText } from "../lib/output-format.ts";
import { toEscaped, toEscapedJson, toPrintable } from "../lib/printable.ts";
import { createLogger } from "../telemetry/logger.ts";
import type { IndexFinding } from "../store/sql/index/index-tables.ts";
import { version } from "../version.ts";

/** Output of the command, and its exit code: 0 nothing is damaged, 1 something was damaged, 2 a part of the folder could not be checked, or not closed. */
export interface ScrubOutcome {
  readonly exitCode: 0 | 1 | 2;
  readonly output: string;
  /** For the standard error. */
  readonly problem: string;
}

const usage = `Usage: stele scrub [settings of the broker]

Checks the data folder of a stopped broker: each block of the embedded chain and each node of its state against its hashes, the chain's index of hashes
and logs against its blocks, and each event of the index against its checksum. Repairs the index from the chain, and a block from the index if the index
has all of it. Calls no receiver, publishes nothing and opens no port. A running broker does the same by itself, slowly: see the setting scrubPeriodMs.

Give the command the broker's settings, such as --data-dir. "-o table" (the default), "-o json" and "-o ndjson" choose the format of the result.

Examples:
  stele scrub
  stele scrub --data-dir ./restored -o json

Exit codes: 0 nothing is damaged; 1 something was damaged, and the output says whether it is repaired; 2 the parts that the output lacks could not be
checked, or the files could not be closed after that.
`;

/** Runs `stele scrub` with the arguments after that word. Never throws. */
export async function runScrub(
  argv: readonly string[],
  { env, log }: { readonly env: Readonly<Record<string, string | undefined>>; readonly log: (line: string) => void },
): Promise<ScrubOutcome> {
  if (argv.some((word) => word === "--help" || word === "-h")) return { exitCode: 0, output: usage, problem: "" };
  try {
    const { format, words } = takeFormat(argv);
    const loaded = loadConfig({ env, argv: words, readFile: (path) => readFileSync(path, "utf8"), version });
    if (loaded.status === "refused") return failed(loaded.problems.join("\n"));
    if (loaded.status !== "loaded") return { exitCode: 0, output: loaded.output, problem: "" };
    const { config, secrets } = loaded;
    requireFolder(config);
    if (isClustered(config)) return failed("nodes share a database: the node that writes the index scrubs it");
    const logger = createLogger({ level: config.logLevel, format: config.logFormat, destination: { write: log } });
    const { reports, failure } = await scrub(config, { logger, secrets });
    if (failure !== undefined && reports.length === 0) return failed(failure);
    const output = format === "table" ? reports.map(toLines).join("") : toEscapedJson(toJsonText(format, reports));
    if (failure !== undefined) return { ...failed(failure), output };
    return { exitCode: reports.some(({ damaged }) => damaged > 0) ? 1 : 0, output, problem: "" };
  } catch (error) {
    return failed(toReason(error));
  }
}

interface ScrubParts {
  readonly logger: Logger;
  readonly secrets: Secrets;
}

/** Returns the reports of the parts that were checked, and why others were not, or why the files could not be closed. Never throws. */
async function scrub(
  config: Config,
  parts: ScrubParts,
): Promise<{ readonly reports: readonly ScrubReport[]; readonly failure: string | undefined }> {
  const cleanup = new CleanupStack();
  const reports: ScrubReport[] = [];
  const failures: string[] = [];
  const onReport = (ended: ScrubReport): void => void reports.push(ended);
  const onFailure = (error: unknown): void => void failures.push(toReason(error));
  await scrubFiles(config, { ...parts, cleanup, onReport, onFailure }).catch(onFailure);
  await cleanup.closeAll().catch(onFailure);
  const [failure, ...later] = failures; // The operator has to know the first.
  for (const reason of later) parts.logger.error("files not closed", { reason });
  return { reports, failure };
}

interface FileParts extends ScrubParts {
  readonly cleanup: CleanupStack;
  readonly onReport: (ended: ScrubReport) => void;
  /** Is also called if the chain fails later, as when its file cannot be closed. */
  readonly onFailure: (error: unknown) => void;
}

async function scrubFiles(config: Config, { logger, secrets, cleanup, onReport, onFailure }: FileParts): Promise<void> {
  const groups = config.groups?.map((group) => ({ ...group, storeRetentionMs: undefined }));
  // A scrub changes no rights, and as root it would create an audit log that the broker's user cannot open.
  const own = { auditLog: "", deliveries: "paused", scrubPeriodMs: 0, storeRetentionMs: 0 } as const;
  const quiet: Config = { ...config, ...own, groups };
  // The wills of sessions that were connected when the broker was killed are for the broker: their clients may come back to it.
  const engine = await startEngine(quiet, { logger, secrets, cleanup, needsData: true, isRestored: true });
  engine.confirm();
  const report = ({ behind, ...ended }: ScrubReport): void =>
    onReport(ended.part === "index" ? withStart(ended, { behind, finding: engine.indexFinding }) : ended);
  await Promise.race([engine.broker.scrub(report), engine.failure.then(onFailure)]);
  engine.stopWithin(config.shutdownDeadlineMs);
}

interface Start {
  /** The damage that the start found before the round began. */
  readonly finding: IndexFinding | undefined;
  readonly behind: ScrubReport["behind"];
}

/** Adds the outcome of the start to the report of the index. An outside chain may not have answered, or the index may still be catching up with it. */
function withStart(report: ScrubReport, { finding, behind }: Start): ScrubReport {
  const { damaged, repaired, advice } = report;
  const isRebuilt = behind === undefined;
  const texts: string[] = [];
  if (finding !== undefined) {
    const outcome = isRebuilt ? "is rebuilt from the chain" : "was emptied, to be rebuilt from the chain";
    texts.push(`the index was damaged and ${outcome}: table ${finding.table}, ${finding.found}`);
  }
  if (!isRebuilt)
    texts.push(`the index may lack events of the chain (${behind}): start the broker, or scrub again later`);
  const count = finding === undefined ? 0 : 1;
  return {
    ...report,
    damaged: damaged + count,
    repaired: repaired + (isRebuilt ? count : 0),
    advice: joinTexts([...texts, advice]),
  };
}

const unitsOf = { chain: "blocks", places: "entries", state: "nodes", index: "batches" } as const;

/** A chain may have written a part of the advice, so it is escaped. */
function toLines({ groupId, part, checked, damaged, repaired, advice }: ScrubReport): string {
  const line = `group ${groupId}, ${part}: ${checked} ${unitsOf[part]} checked, ${damaged} damaged, ${repaired} repaired\n`;
  return advice === undefined ? line : `${line}${toEscaped(advice)}\n`;
}

function failed(reason: string): ScrubOutcome {
  return { exitCode: 2, output: "", problem: `stele scrub: ${reason}\n` };
}

/** A chain or the system may have written a part of it. */
function toReason(error: unknown): string {
  return toPrintable(error instanceof Error ? error.message : String(error));
}
