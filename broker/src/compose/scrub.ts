import { readFileSync } from "node:fs";
import { startEngine } from "./start-server.ts";
import { requireFolder } from "./folder.ts";
import { isClustered } from "../config/derived.ts";
import { loadConfig, type Secrets } from "../config/load-config.ts";
import type { Config } from "../config/settings.ts";
import type { ScrubReport } from "../engine/integrity/scrubber.ts";
import { CleanupStack } from "../lib/cleanup-stack.ts";
import type { Logger } from "../lib/logger.ts";
import { takeFormat, toJsonText } from "../lib/output-format.ts";
import { createLogger } from "../telemetry/logger.ts";
import type { IndexFinding } from "../store/sql/index/index-tables.ts";
import { version } from "../version.ts";

/** Output of the command, and its exit code: 0 nothing is damaged, 1 something was damaged, 2 the folder could not be checked, or not closed. */
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

Exit codes: 0 nothing is damaged; 1 something was damaged, and the output says whether it is repaired; 2 the folder could not be checked, or its files
could not be closed after that.
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
    const { reports, unclosed } = await scrub(config, { logger, secrets });
    const output = format === "table" ? reports.map(toLines).join("") : toJsonText(format, reports);
    if (unclosed !== "") return { ...failed(unclosed), output };
    return { exitCode: reports.some(({ damaged }) => damaged > 0) ? 1 : 0, output, problem: "" };
  } catch (error) {
    return failed(toReason(error));
  }
}

interface ScrubParts {
  readonly logger: Logger;
  readonly secrets: Secrets;
}

/** The reports, and why the files could not be closed after the scrub: "" if they were. */
async function scrub(
  config: Config,
  parts: ScrubParts,
): Promise<{ readonly reports: readonly ScrubReport[]; readonly unclosed: string }> {
  const cleanup = new CleanupStack();
  const close = (): Promise<string> => cleanup.closeAll().then(() => "", toReason);
  try {
    const reports = await scrubFiles(config, { ...parts, cleanup });
    return { reports, unclosed: await close() };
  } catch (error) {
    const unclosed = await close();
    if (unclosed !== "") parts.logger.error("files not closed", { reason: unclosed });
    throw error; // The operator has to know the first failure.
  }
}

async function scrubFiles(
  config: Config,
  { logger, secrets, cleanup }: ScrubParts & { readonly cleanup: CleanupStack },
): Promise<readonly ScrubReport[]> {
  const groups = config.groups?.map((group) => ({ ...group, storeRetentionMs: undefined }));
  // A scrub changes no rights, and as root it would create an audit log that the broker's user cannot open.
  const own = { auditLog: "", deliveries: "paused", scrubPeriodMs: 0, storeRetentionMs: 0 } as const;
  const quiet: Config = { ...config, ...own, groups };
  // The wills of sessions that were connected when the broker was killed are for the broker: their clients may come back to it.
  const engine = await startEngine(quiet, { logger, secrets, cleanup, needsData: true, isRestored: true });
  engine.confirm();
  const failure = engine.failure.then((error): never => {
    throw error;
  });
  const reports = await Promise.race([engine.broker.scrub(), failure]);
  engine.stopWithin(config.shutdownDeadlineMs);
  return reports.map(({ behind, ...report }) =>
    report.part === "index" ? withStart(report, { behind, finding: engine.indexFinding }) : report,
  );
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
  const all = [...texts, advice].filter((text) => text !== undefined);
  const count = finding === undefined ? 0 : 1;
  return {
    ...report,
    damaged: damaged + count,
    repaired: repaired + (isRebuilt ? count : 0),
    advice: all.length === 0 ? undefined : all.join("; "),
  };
}

const unitsOf = { chain: "blocks", places: "entries", state: "nodes", index: "batches" } as const;

function toLines({ groupId, part, checked, damaged, repaired, advice }: ScrubReport): string {
  const line = `group ${groupId}, ${part}: ${checked} ${unitsOf[part]} checked, ${damaged} damaged, ${repaired} repaired\n`;
  return advice === undefined ? line : `${line}${advice}\n`;
}

function failed(reason: string): ScrubOutcome {
  return { exitCode: 2, output: "", problem: `stele scrub: ${reason}\n` };
}

function toReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
