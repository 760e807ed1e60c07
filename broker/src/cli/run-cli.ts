import { CommanderError } from "commander";
import { toPrintable } from "../lib/printable.ts";
import { describeError } from "./describe-error.ts";
import { type CliIo, CommandFailed, isClosedPipe, UsageError, write } from "./io.ts";
import { createProgram } from "./program.ts";

/** Exit codes of every command. */
const exitCodes = { done: 0, failed: 1, wrongUsage: 2 } as const;

/** Runs a command with the arguments after the program's name, and returns its exit code. Never throws. */
export async function runCli(argv: readonly string[], io: CliIo, version: string): Promise<number> {
  try {
    await createProgram(io, version).parseAsync(argv, { from: "user" });
    return exitCodes.done;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.wrongUsage;
    if (isClosedPipe(error)) return exitCodes.done; // As with `| head`.
    if (io.signal.aborted && !(error instanceof CommandFailed)) return exitCodes.failed;
    await write(io.stderr, `stele: ${toPrintable(describeError(error))}\n`).catch(() => {});
    return error instanceof UsageError ? exitCodes.wrongUsage : exitCodes.failed;
  }
}
