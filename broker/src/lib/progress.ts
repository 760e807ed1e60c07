/** Time until a running command shows its duration, and then between updates, in milliseconds. */
const stepMs = 1_000;

/** Standard error, or its replacement in a test. */
interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string, done: () => void): unknown;
}

/** On a terminal, shows each second how long a command has run. Dispose the result, which removes the line, before anything else is written. */
export function startProgress(stream: ProgressStream, name: string): Disposable {
  if (stream.isTTY !== true) return { [Symbol.dispose]: () => {} };
  let seconds = 0;
  const show = (text: string): void => void stream.write(`\r\u{1b}[K${text}`, () => {});
  const timer = setInterval(() => {
    seconds += 1;
    show(`${name}: ${seconds} s`);
  }, stepMs);
  timer.unref();
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      if (seconds > 0) show("");
      seconds = 0;
    },
  };
}

interface ProgressTask<Result> {
  readonly name: string;
  /** Must write nothing to the stream. */
  readonly task: () => Promise<Result>;
}

/** Runs a task, and shows meanwhile how long it has run. */
export async function withProgress<Result>(
  stream: ProgressStream,
  { name, task }: ProgressTask<Result>,
): Promise<Result> {
  using _progress = startProgress(stream, name);
  return await task();
}
