/** A running anvil on the loopback interface. */
export interface AnvilProcess extends AsyncDisposable {
  readonly url: string;
  readonly pid: number | undefined;
  isRunning(): boolean;
  /** SIGTERM: it writes its state if it has a file for it. Kills it if it does not end in 20 s. */
  stop(): Promise<void>;
  /** kill -9. */
  kill(): Promise<void>;
}

/** Path of the binary. */
export function anvilFile(): string;

/** Starts anvil with these flags. Without `--port` it listens on a free port. */
export function startAnvil(args?: readonly string[]): Promise<AnvilProcess>;
