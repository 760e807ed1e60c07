import { runCli } from "../run-cli.ts";

interface RunOptions {
  readonly rowsMax?: number;
  readonly signal?: AbortSignal;
  /** Called before each text that the command writes to stdout. */
  readonly onText?: () => void;
  /** Chunks of stdin. */
  readonly input?: readonly string[];
  /** Flags that choose the output format. */
  readonly format?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether stdin and stderr are a terminal. */
  readonly isTerminal?: boolean;
}

/** Text that was written. Writing fails like a closed pipe after the first `rowsMax` texts. */
class TextStream {
  readonly texts: string[] = [];
  onText: () => void = () => {};
  readonly isTTY: boolean;
  readonly #rowsMax: number;

  constructor(rowsMax = Number.POSITIVE_INFINITY, isTerminal = false) {
    this.#rowsMax = rowsMax;
    this.isTTY = isTerminal;
  }

  write(text: string | Uint8Array, done: (error?: Error) => void): void {
    this.onText();
    if (this.texts.length >= this.#rowsMax) return done(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
    this.texts.push(String(text));
    done();
  }
}

const loadSettings = () => Promise.reject(new Error("no settings"));

/** Runs a command. A test answers its calls by a stub of `fetch`. */
export async function run(
  argv: readonly string[],
  {
    rowsMax,
    signal = new AbortController().signal,
    onText = () => {},
    input = ["1\n", "2\n", "3\n"],
    format = ["-o", "ndjson"],
    env,
    isTerminal,
  }: RunOptions,
) {
  const [stdout, stderr] = [new TextStream(rowsMax), new TextStream(undefined, isTerminal)];
  stdout.onText = onText;
  const lines = (async function* () {
    yield* input;
  })();
  const stdin = Object.assign(lines, { isTTY: isTerminal === true });
  const streams = { stdin, stdout, stderr };
  const io = { env: { XDG_CONFIG_HOME: "/nowhere", ...env }, ...streams, signal, loadSettings };
  const code = await runCli([...argv, ...format], io, "test");
  return { code, stdout: stdout.texts, stderr: stderr.texts.join("") };
}
