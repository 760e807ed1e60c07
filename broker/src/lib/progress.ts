/** How often a command says that it still runs, in milliseconds; the first time as well. */
const stepMs = 1_000;

/** The standard error, or what a test has in its place. */
interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string, done: () => void): unknown;
}

/** On a terminal, says each second how long a command has run. What is disposed removes the line; that must happen before anything else is written. */
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
  /** Writes nothing itself. */
  readonly task: () => Promise<Result>;
}

/** Runs a task, and says meanwhile how long it has run. */
export async function withProgress<Result>(
  stream: ProgressStream,
  { name, task }: ProgressTask<Result>,
): Promise<Result> {
  using _progress = startProgress(stream, name);
  return await task();
}
