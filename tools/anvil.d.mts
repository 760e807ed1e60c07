/** A running anvil on the loopback interface. */
export interface AnvilProcess extends AsyncDisposable {
  readonly url: string;
  readonly pid: number | undefined;
  isRunning(): boolean;
  /** Sends SIGTERM: anvil writes its state if a flag names a file for it, and ends. Kills anvil if it has not ended after 20 s. */
  stop(): Promise<void>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
}

/** Path of the binary. */
export function anvilFile(): string;

/** Starts anvil with these flags. Without `--port` it listens on a free port. */
export function startAnvil(args?: readonly string[]): Promise<AnvilProcess>;
