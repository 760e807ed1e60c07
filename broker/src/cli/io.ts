import type { BrokerSettings } from "./broker-settings.ts";

/** The parts of the process that a command uses. */
export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Aborted by SIGINT (Ctrl-C), SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  readonly loadSettings: () => Promise<BrokerSettings>;
}

export interface OutputStream {
  readonly isTTY?: boolean;
  write(text: string | Uint8Array, done: (error?: Error | null) => void): unknown;
}

/** The command was used wrongly: exit code 2. */
export class UsageError extends Error {}

/** The command failed, at least in part: exit code 1. */
export class CommandFailed extends Error {}

/** Resolves once the stream has written the text. @throws the stream's error, such as EPIPE. */
export function write(stream: OutputStream, text: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(text, (error) => (error ? reject(error) : resolve()));
  });
}

/** Time that a reader has to take a pending write after the signal, in milliseconds. */
const lastWriteMsMax = 1_000;

/** Like `write`, but gives up some time after the signal: a reader that has stopped would keep the command alive. @throws CommandFailed if it gives up. */
export function writeUntil(stream: OutputStream, text: string | Uint8Array, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const giveUp = (): void => reject(new CommandFailed("nothing reads the output: the rest of it is lost"));
    const begin = (): void => {
      timer = setTimeout(giveUp, lastWriteMsMax);
    };
    if (signal.aborted) begin();
    else signal.addEventListener("abort", begin);
    void write(stream, text)
      .then(resolve, reject)
      .finally(() => {
        clearTimeout(timer);
        signal.removeEventListener("abort", begin);
      });
  });
}

/** Whether a write failed because nothing reads the stream any more, as with `| head`. */
export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
