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
  /** Called for each later signal that does not repeat the first one. */
  readonly insist: () => void;
}

export interface EndSignalSource {
  /** Default: this process. */
  readonly source?: Pick<NodeJS.EventEmitter, "on">;
  readonly monotonic?: () => number;
}

/** Listens for the signals that end this process. After SIGHUP, it ends by that signal in place of an exit code. */
export function onEndSignals(
  { begin, insist }: EndSignalHandlers,
  { source = process, monotonic = () => performance.now() }: EndSignalSource = {},
): void {
  let begunAt: number | undefined;
  const handle = (signal: NodeJS.Signals): void => {
    if (begunAt === undefined) {
      begunAt = monotonic();
      if (signal === "SIGHUP") process.once("exit", endBySignal);
      begin(signal);
    } else if (monotonic() - begunAt >= repeatMsMax) {
      insist();
    }
  };
  for (const signal of endSignals) source.on(signal, handle);
}

/** Ends the process by the signal, as without a listener. A normal exit makes Node.js reset the terminal, and abort (SIGABRT) if the terminal has gone. */
function endBySignal(): void {
  process.removeAllListeners("SIGHUP");
  process.kill(process.pid, "SIGHUP");
}
