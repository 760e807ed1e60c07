import { isatty } from "node:tty";

/** Signals that ask the process to end. SIGHUP comes when somebody closes the terminal. */
const endSignals = ["SIGTERM", "SIGINT", "SIGHUP"] as const;
/**
 * Signals this soon after the first one repeat it: a terminal sends Ctrl-C to npm and to the program, and npm passes it on to the program. A shell does the same
 * when its terminal is closed.
 */
const repeatMsMax = 1_000;

export interface EndSignalHandlers {
  /** Called for the first signal. */
  readonly begin: (signal: NodeJS.Signals) => void;
  /** Called for each later SIGTERM or SIGINT that does not repeat the first signal. */
  readonly insist: () => void;
}

/** This process, or its replacement in a test. */
type SignalSource = Pick<NodeJS.EventEmitter, "on" | "once">;

/** Listens for the signals that end this process. After SIGHUP, it ends by that signal in place of an exit code, unless a supervisor needs the code. */
export function onEndSignals({ begin, insist }: EndSignalHandlers, source: SignalSource = process): void {
  let isBegun = false;
  let mayInsist = false;
  // A signal that has waited while the event loop was busy is handled after the timers, and before this.
  const endRepeats = (): void => void setImmediate(() => (mayInsist = true));
  const handle = (signal: NodeJS.Signals): void => {
    if (!isBegun) {
      isBegun = true;
      setTimeout(endRepeats, repeatMsMax).unref();
      begin(signal);
    } else if (mayInsist && signal !== "SIGHUP") {
      insist();
    }
  };
  const hasTerminal = [0, 1, 2].some(isatty); // Once the terminal has gone, isatty no longer knows it.
  const end = (code: number): void => {
    // Without a terminal, a supervisor started this process. It would take SIGHUP for a clean end, also if the code says what failed.
    if (code === 0 || hasTerminal) endBySignal();
  };
  source.once("SIGHUP", () => source.once("exit", end));
  for (const signal of endSignals) source.on(signal, handle);
}

/** Ends the process by the signal, as without a listener. A normal exit makes Node.js reset the terminal, and abort (SIGABRT) if the terminal has gone. */
function endBySignal(): void {
  process.removeAllListeners("SIGHUP");
  process.kill(process.pid, "SIGHUP");
}
