import { type ChildProcess, spawn } from "node:child_process";
import { Readable } from "node:stream";
import { runCommand } from "@stele/broker/cli";
import { mainFile } from "./broker-process.ts";

export interface CommandOptions {
  /** Environment variables besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** All of stdin; it is closed after that. */
  readonly input?: string | Uint8Array;
  /** The program to run instead of the built one, such as one that npm installed. */
  readonly program?: readonly string[];
  /** Called with all of stderr so far, and a function that sends the command a signal. */
  readonly onStderr?: (text: string, kill: (signal: NodeJS.Signals) => void) => void;
}

/** How a command ended. */
export interface CommandRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const running = new Set<ChildProcess>();
// An interrupted test run leaves no command behind.
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Runs the `stele` command until it ends. */
export function runStele(args: readonly string[], options: CommandOptions = {}): Promise<CommandRun> {
  const { env = {}, input = "", program = [process.execPath, mainFile], onStderr } = options;
  const [file = "", ...first] = program;
  const child = spawn(file, [...first, ...args], { env: { PATH: process.env["PATH"], ...env } });
  running.add(child);
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    onStderr?.(stderr, (signal) => child.kill(signal));
  });
  child.stdin.on("error", () => {}); // The command may end without reading its input.
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => {
      running.delete(child);
      resolve({ code, stdout, stderr });
    });
  });
}

/** Runs a client command in this process, because starting a process takes longer than most commands. `env.HOME` is its home folder. */
export async function callStele(
  args: readonly string[],
  { env = {}, input = "" }: Pick<CommandOptions, "env" | "input"> = {},
): Promise<CommandRun> {
  const [stdout, stderr] = [new TextStream(), new TextStream()];
  const { signal } = new AbortController();
  const stdin = Readable.from(input.length === 0 ? [] : [input]);
  const code = await runCommand(args, { env, stdin, stdout, stderr, signal }, "0.0.0");
  return { code, stdout: stdout.text, stderr: stderr.text };
}

class TextStream {
  text = "";

  write(text: string | Uint8Array, done: () => void): void {
    this.text += Buffer.from(text).toString();
    done();
  }
}
