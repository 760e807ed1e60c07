import { isatty } from "node:tty";

/** Signals that ask the process to end. SIGHUP comes when somebody closes the terminal. */
const endSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
/**
 * A signal that comes within this time after the first one counts as a copy of it. At Ctrl-C, the terminal signals both npm and the program, and npm forwards
 * its signal to the program. A shell does the same when its terminal is closed.
 */
const copyMsMax = 1_000;

export interface EndSignalHandlers {
  /** Called for the first signal. */
  readonly stop: (signal: NodeJS.Signals) => void;
  /** Called for each later SIGTERM or SIGINT that is not a copy of the first signal. */
  readonly exitNow: () => void;
}

/** This process, or its replacement in a test. */
type SignalSource = Pick<NodeJS.EventEmitter, "on" | "once">;

/** Listens for the signals that end this process. After SIGHUP, the process ends with that signal, unless a supervisor needs the exit code. */
export function onEndSignals({ stop, exitNow }: EndSignalHandlers, source: SignalSource = process): void {
  let isStopping = false;
  let mayExitNow = false;
  // After a busy time, the event loop runs the timer, then handles a waiting signal, and only then sets the flag. So the signal still counts as a copy.
  const endCopies = (): void => void setImmediate(() => (mayExitNow = true));
  const handle = (signal: NodeJS.Signals): void => {
    if (!isStopping) {
      isStopping = true;
      setTimeout(endCopies, copyMsMax).unref();
      stop(signal);
    } else if (mayExitNow && signal !== "SIGHUP") {
      exitNow();
    }
  };
  const hasTerminal = [0, 1, 2].some(isatty); // After the terminal has closed, isatty returns false.
  const end = (code: number): void => {
    // Without a terminal, a supervisor started this process. It would treat SIGHUP as a clean end, even if the exit code says that something failed.
    if (code === 0 || hasTerminal) endBySignal();
  };
  source.once("SIGHUP", () => source.once("exit", end));
  for (const signal of endSignals) source.on(signal, handle);
}

/** Ends the process with SIGHUP, as if it had no listener. At a normal exit Node.js resets the terminal, and aborts (SIGABRT) if the terminal has closed. */
function endBySignal(): void {
  process.removeAllListeners("SIGHUP");
  process.kill(process.pid, "SIGHUP");
}
