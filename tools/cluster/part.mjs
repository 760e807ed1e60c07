// One process of the cluster.
import { spawn } from "node:child_process";
import { createWriteStream } from "node:fs";
import { join } from "node:path";

const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;
const linesShownMax = 15;
/** Lines of output to keep: more than a node writes at its start. */
const linesKeptMax = 100;

/** A process that reports in its output when it is ready. The output goes to a file. */
export class Part {
  #name;
  #file;
  #restartCommand;
  #process;
  #output = [];
  #exited;

  /**
   * @param {string} name
   * @param {{ command: string, args: readonly string[], logs: string, register: (part: Part) => void, spawnOptions?: object, restartCommand?: string }} options
   */
  constructor(name, { command, args, logs, register, spawnOptions = {}, restartCommand }) {
    this.#name = name;
    this.#file = join(logs, `${name}.log`);
    this.#restartCommand = restartCommand;
    // The process gets its own process group. So Ctrl-C reaches only this program, which then stops the parts in order.
    this.#process = spawn(command, args, { ...spawnOptions, stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.#exited = new Promise((settle) => {
      this.#process.once("error", ({ message }) => settle(`cannot be started: ${message}`));
      this.#process.once("exit", (code, signal) => settle(`ended by itself (${signal ?? `exit code ${code}`})`));
    });
    this.#keepOutput();
    register(this);
  }

  get name() {
    return this.#name;
  }

  get pid() {
    return this.#process.pid;
  }

  /** The command with which the user restarts the process; undefined if there is none. */
  get restartCommand() {
    return this.#restartCommand;
  }

  get isRunning() {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Settles with how the process ended. */
  get exited() {
    return this.#exited;
  }

  /** Waits until the output matches. @param {RegExp} pattern */
  async waitFor(pattern) {
    const ready = new Promise((settle) => {
      const look = () => {
        if (!pattern.test(this.#output.join("\n"))) return;
        this.#process.stdout.off("data", look);
        this.#process.stderr.off("data", look);
        settle(undefined);
      };
      this.#process.stdout.on("data", look);
      this.#process.stderr.on("data", look);
      look();
    });
    const { timer, late } = timeOut(startTimeoutMs);
    const failure = await Promise.race([ready, this.#exited, late]);
    clearTimeout(timer);
    if (failure !== undefined) throw new Error(this.describe(failure));
    this.#output = [];
  }

  /** Describes a failure: what happened, the file of the log, and the last lines of the output. */
  describe(what) {
    const lines = this.#output.slice(-linesShownMax).map((line) => `    ${line}`);
    return [`${this.#name} ${what}; its log is ${this.#file}`, ...lines].join("\n");
  }

  /** Stops the process, by force after a timeout. */
  async stop(signal = "SIGTERM") {
    if (!this.isRunning || this.pid === undefined) return;
    this.#process.kill(signal);
    const { timer, late } = timeOut(stopTimeoutMs);
    const failure = await Promise.race([this.#exited.then(() => undefined), late]);
    clearTimeout(timer);
    if (failure === undefined) return;
    this.#process.kill("SIGKILL");
    await this.#exited;
  }

  #keepOutput() {
    const file = createWriteStream(this.#file, { flags: "a" });
    for (const stream of [this.#process.stdout, this.#process.stderr]) {
      let cut = ""; // the beginning of a line whose end has not come
      stream.setEncoding("utf8").on("data", (text) => {
        file.write(text);
        const lines = (cut + text).split("\n");
        cut = lines.pop();
        this.#output = [...this.#output, ...lines.filter((line) => line !== "")].slice(-linesKeptMax);
      });
    }
  }
}

function timeOut(ms) {
  let timer;
  const late = new Promise((settle) => {
    timer = setTimeout(() => settle(`was not ready after ${ms / 1000} s`), ms);
  });
  return { timer, late };
}
