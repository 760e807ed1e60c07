import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type BrokerProcess, startBroker } from "../../../harness/broker-process.ts";
import { createTempFolder, type TempFolder } from "../../../harness/temp-folder.ts";
import { until } from "../../../harness/until.ts";
import { unsavedBytesMax } from "../local-broker.ts";
import { type Call, isComplete, parseTrace, tracedCalls } from "./trace.ts";

const isInstalled = spawnSync("strace", ["-V"], { stdio: "ignore" }).status === 0;

/** Whether the tests that need strace run. If strace is missing but required, these tests run and fail. */
export const hasStrace = isInstalled || process.env["CHECKS_STRACE"] === "required";

export const straceTitle = hasStrace ? "" : " (left out: strace is not installed)";

/** Runs brokers on one data folder, one after another. Records how they change its files, and what they send to sockets. */
export class Recorder implements Disposable {
  readonly #root: TempFolder = createTempFolder();
  readonly #calls: Call[] = [];
  #runs = 0;

  get dataDir(): string {
    return join(this.#root.path, "data");
  }

  /** The calls of all runs that have ended. */
  get calls(): readonly Call[] {
    return this.#calls;
  }

  /** Starts a broker under strace; `use` must end it. @throws Error if strace is missing or may not trace. */
  async run(use: (broker: BrokerProcess) => Promise<void>): Promise<void> {
    if (!isInstalled) throw new Error("strace is not installed: apt-get install strace");
    const folder = join(this.#root.path, `trace-${(this.#runs += 1)}`);
    mkdirSync(this.dataDir, { recursive: true, mode: 0o700 });
    mkdirSync(folder);
    {
      await using broker = await startBroker({ dataDir: this.dataDir, env, shell: commandOf(folder) });
      await use(broker);
    }
    await until("strace has written everything", () => isComplete(folder));
    // One at a time: there are too many calls for the arguments of one push.
    for (const call of parseTrace(folder, this.dataDir)) this.#calls.push(call);
  }

  [Symbol.dispose](): void {
    this.#root[Symbol.dispose]();
  }
}

/** io_uring is off, because strace does not see its reads and writes. */
const env = { STELE_LOG_LEVEL: "warn", UV_USE_IO_URING: "0", STELE_CHAIN_UNSAVED_BYTES_MAX: String(unsavedBytesMax) };

/**
 * The shell script that starts a broker under strace. With -D, the started process becomes the broker, so that the broker gets the signals. With -ff,
 * each thread has its own file: every line is whole.
 */
function commandOf(folder: string): string {
  const form = "-ff -y -xx -s 33554432 --timestamps=unix,ns --syscall-times=ns -e signal=SIGKILL";
  return `exec strace -D --seccomp-bpf -f ${form} -e trace=${tracedCalls} -o '${join(folder, "thread")}' "$@"`;
}
