import type { BrokerSettings } from "./broker-settings.ts";

/** The parts of the process that a command uses. */
export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly stdin: AsyncIterable<Uint8Array | string> & { readonly isTTY?: boolean };
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Aborted by SIGINT (Ctrl-C) and SIGTERM. */
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

/** Whether a write failed because nothing reads the stream any more, as with `| head`. */
export function isClosedPipe(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EPIPE";
}
