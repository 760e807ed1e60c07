import { runCommand } from "./compose/cli.ts";
import { onEndSignals } from "./lib/system/end-signals.ts";
import { version } from "./version.ts";

const { env, stdin, stdout, stderr } = process;
const ending = new AbortController();
const stop = (): void => {
  ending.abort();
  stdin.destroy(); // Ends a pending read.
};
onEndSignals({ stop, exitNow: () => process.exit(1) });
// Every write handles its own error. Without this listener a closed pipe would end the process.
for (const stream of [stdout, stderr]) stream.on("error", () => {});

const io = { env, stdin, stdout, stderr, signal: ending.signal };
process.exitCode = await runCommand(process.argv.slice(2), io, version);
stdin.destroy(); // A pending read would keep the process alive.
if (ending.signal.aborted) process.exit(); // A write that the command no longer waits for would keep it alive too.
