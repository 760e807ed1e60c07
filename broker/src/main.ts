#!/usr/bin/env node
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { toBanner } from "./banner.ts";
import type { RunningServer } from "./compose/start-server.ts";
import type { BackupCommand } from "./compose/backup.ts";
import { type LoadOutcome, loadConfig } from "./config/load-config.ts";
import type { Logger } from "./lib/logger.ts";
import { toPrintable } from "./lib/printable.ts";
import { withProgress } from "./lib/progress.ts";
import { onEndSignals } from "./lib/system/end-signals.ts";
import { tuneCollector } from "./lib/system/heap.ts";
import { LostFileError } from "./lib/system/open-file.ts";
import { checkSecretFile } from "./lib/system/secret-file.ts";
import { standardError, standardOutput } from "./lib/system/standard-output.ts";
import { createLogger } from "./telemetry/logger.ts";
import { version } from "./version.ts";

/**
 * Exit codes. `done`: the task is done. `failed`: a part failed to start or to stop. `refused`: the settings were refused. `unknown`: verify or scrub has no
 * result. `lost`: the data folder was taken away; a supervisor must not start the broker again, since it would make a new chain at the path.
 */
const exitCodes = { done: 0, failed: 1, refused: 2, unknown: 2, lost: 3 } as const;
/** Longest delay of a timer in Node.js. */
const timerDelayMsMax = 2 ** 31 - 1;

type LoadedConfig = Extract<LoadOutcome, { readonly status: "loaded" }>;

// Without this listener, an output whose reader has gone would end the process. The log notices such an output itself.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
// The last lines may have to wait for a slow terminal.
process.on("exit", () => {
  for (const output of [standardOutput, standardError]) output.flush();
});
await main();

/** Each command imports only what it runs: loading a whole broker takes a tenth of a second of processor time. */
async function main(): Promise<void> {
  const [command, ...rest] = process.argv.slice(2);
  if (command === "verify") await verify(rest);
  else if (command === "scrub") await scrub(rest);
  else if (command === "key" || command === "role") await changeKeys(command, rest);
  else if (command === "backup" || command === "restore" || command === "activate") await backup(command, rest);
  else await run(command === "start" ? rest : process.argv.slice(2));
}

async function changeKeys(command: "key" | "role", argv: readonly string[]): Promise<void> {
  const runCommand =
    command === "key" ? (await import("./compose/keys.ts")).runKeys : (await import("./compose/roles.ts")).runRoles;
  await conclude(await runCommand(argv, { env: process.env, now: () => Date.now() }));
}

async function backup(command: BackupCommand, argv: readonly string[]): Promise<void> {
  const { runBackupCommand } = await import("./compose/backup.ts");
  const outcome = await withProgress(process.stderr, {
    name: `stele ${command}`,
    task: () => runBackupCommand(command, argv, { env: process.env, log: (line) => void process.stderr.write(line) }),
  });
  await conclude(outcome);
  process.exit(); // An operation on a disk that hangs would keep the process.
}

async function verify(argv: readonly string[]): Promise<void> {
  const { runVerify } = await import("./verify/run-verify.ts");
  const outcome = await withProgress(process.stderr, {
    name: "stele verify",
    task: () => runVerify(argv, { env: process.env }),
  });
  await conclude(outcome, exitCodes.unknown);
}

async function scrub(argv: readonly string[]): Promise<void> {
  stayAlive();
  const { runScrub } = await import("./compose/scrub.ts");
  const outcome = await runScrub(argv, { env: process.env, log: (line) => void process.stderr.write(line) });
  await conclude(outcome, exitCodes.unknown);
  process.exit();
}

interface CommandOutcome {
  readonly exitCode: number;
  readonly output: string;
  /** For the standard error. */
  readonly problem: string;
}

/** Writes the result of a command and sets the exit code: `codeIfLost` if the command succeeded, but its output could not be written. */
async function conclude(
  { exitCode, output, problem }: CommandOutcome,
  codeIfLost: number = exitCodes.failed,
): Promise<void> {
  process.stderr.write(problem);
  process.exitCode = exitCode;
  const failure = await new Promise<NodeJS.ErrnoException | null | undefined>((resolve) => {
    process.stdout.write(output, resolve);
  });
  if (!failure || failure.code === "EPIPE") return; // As with `| head`.
  process.stderr.write(`stele: the output is lost: ${failure.message}\n`);
  if (exitCode === exitCodes.done) process.exitCode = codeIfLost;
}

async function run(argv: readonly string[]): Promise<void> {
  const outcome = loadConfig({
    env: process.env,
    argv,
    readFile: (path) => readFileSync(path, "utf8"),
    version,
  });
  if (outcome.status === "printed") {
    await conclude({ exitCode: exitCodes.done, output: outcome.output, problem: "" });
  } else if (outcome.status === "refused") {
    refuse(outcome.problems);
  } else if (outcome.status === "checked") {
    const { config, secrets } = outcome;
    const { findProblems } = await import("./compose/settings.ts");
    const problems = await findProblems(config, secrets);
    if (problems.length > 0) refuse(problems);
    else {
      const { describeRoles } = await import("./compose/roles.ts");
      await conclude({ exitCode: exitCodes.done, output: outcome.output + (await describeRoles(config)), problem: "" });
    }
  } else {
    await serve(outcome);
  }
}

function refuse(problems: readonly string[]): void {
  process.stderr.write(`${problems.join("\n")}\n`);
  process.exitCode = exitCodes.refused;
}

async function serve({ config, secrets, secretFile }: LoadedConfig): Promise<void> {
  tuneCollector();
  stayAlive();
  const logger = createLogger({ level: config.logLevel, format: config.logFormat });
  const signal = endOnSignals(logger);
  try {
    if (secretFile !== undefined) checkSecretFile(secretFile, logger);
    const { startServer } = await import("./compose/start-server.ts");
    const server = await startServer(config, { logger, secrets, signal });
    void stopOnFailure(server, logger);
    logger.info("broker started", { url: server.url, dataDir: server.dataDir, version });
    standardError.write(toBanner({ ...server, groups: server.health() }, server.config));
    await aborted(signal);
    await server.stop();
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) fail(error, logger);
  }
  logger.info("broker stopped");
  process.exit(exitCodes.done);
}

/** Keeps the process alive. While a start or a stop waits for a chain, perhaps only the clock's timers are open, and these do not keep it alive. */
function stayAlive(): void {
  setInterval(() => {}, timerDelayMsMax);
}

/** The first signal stops the broker in order, even during its start; a later one ends the process at once. */
function endOnSignals(logger: Logger): AbortSignal {
  const ending = new AbortController();
  const stop = (signal: NodeJS.Signals): void => {
    logger.info("broker stopping", { signal });
    ending.abort();
  };
  onEndSignals({ stop, exitNow: () => process.exit(exitCodes.failed) });
  return ending.signal;
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}

/** Waits until a part of the broker fails, then stops the broker in order if possible, and ends the process. */
async function stopOnFailure(server: RunningServer, logger: Logger): Promise<void> {
  const failure = await server.failure;
  logger.error("broker stopping", { error: failure });
  try {
    if (!(failure instanceof LostFileError)) await server.stop(); // Nothing that a stop writes would reach the files at the paths.
  } catch (error) {
    if (error instanceof LostFileError) fail(error, logger); // The loss caused the other failure, and the exit code has to say so.
    logger.error("stopping failed", { error });
  }
  fail(failure, logger);
}

function fail(error: unknown, logger: Logger): never {
  const reason = error instanceof Error ? error.message : String(error);
  logger.error("broker failed", { reason });
  logger.debug("broker failed", { error });
  standardError.write(`stele: ${toPrintable(reason)}\n`); // A database or a chain may have written a part of it.
  process.exit(error instanceof LostFileError ? exitCodes.lost : exitCodes.failed);
}
