import { spawn } from "node:child_process";
import { once } from "node:events";

const stopTimeoutMs = 60_000;
const outputCharactersMax = 10_000;

/** A child process that prints a line with its address once it listens. */
export class Child {
  #process;
  #output = "";
  #exited;

  /**
   * @param {readonly string[]} args arguments of `command`. By default, the command is this Node.js, and the first argument is the script.
   * @param {{ readonly env?: Record<string, string>, readonly ipc?: boolean, readonly command?: string }} options
   */
  constructor(args, { env = {}, ipc = false, command = process.execPath } = {}) {
    const stdio = ["ignore", "pipe", "pipe", ...(ipc ? ["ipc"] : [])];
    this.#process = spawn(command, args, { stdio, env: { ...process.env, ...env } });
    this.#exited = once(this.#process, "exit");
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        this.#output = (this.#output + text).slice(-outputCharactersMax);
      });
    }
  }

  get pid() {
    return this.#process.pid;
  }

  /** Returns the first match in the output, now or later. Throws if the process ends before that. @param {RegExp} pattern */
  async waitFor(pattern) {
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match !== null) return match;
      if (this.#hasEnded) throw new Error(`The process ended during its start:\n${this.#output}`);
      await this.#waitForOutput();
    }
  }

  get #hasEnded() {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  async #waitForOutput() {
    const waiting = new AbortController();
    const { signal } = waiting;
    const outputs = [this.#process.stderr, this.#process.stdout].map((stream) => once(stream, "data", { signal }));
    await Promise.race([...outputs, this.#exited]);
    for (const output of outputs) output.catch(() => {});
    waiting.abort();
  }

  /** Sends an IPC message and returns the next one from the process. */
  async ask(message) {
    const answered = once(this.#process, "message");
    this.#process.send(message);
    const [answer] = await Promise.race([answered, this.#failWhenExited()]);
    return answer;
  }

  /** Sends SIGTERM and waits for the end. Throws if it had to kill the process after the timeout. */
  async stop() {
    if (this.#hasEnded) return;
    this.#process.kill("SIGTERM");
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), stopTimeoutMs);
    const [code, signal] = await this.#exited;
    clearTimeout(timer);
    if (signal === "SIGKILL") throw new Error(`The process did not stop within ${stopTimeoutMs} ms (code ${code}).`);
  }

  /** Ends the process at once, as a crash does. */
  async kill() {
    this.#process.kill("SIGKILL");
    await this.#exited;
  }

  async #failWhenExited() {
    await this.#exited;
    throw new Error(`The process ended before it answered:\n${this.#output}`);
  }
}
