import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { until } from "../../harness/until.ts";

export interface PackedBrokerOptions {
  /** Path of the installed command. */
  readonly program: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A broker started by the installed command. */
export class PackedBroker implements AsyncDisposable {
  #url = "";
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  get url(): string {
    return this.#url;
  }

  /** Starts a broker and waits for its banner. @throws Error with its output if it exits, or an Error if it prints no banner in time. */
  static async start({ program, cwd, env }: PackedBrokerOptions): Promise<PackedBroker> {
    const flags = ["--port", "0", "--stomp-port", "off", "--mqtt-port", "off"];
    const child = spawn(program, ["start", ...flags], { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
    const broker = new PackedBroker(child);
    let output = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
    try {
      broker.#url = await until("the installed broker is ready", () => {
        if (child.exitCode !== null) throw new Error(`the broker ended: ${output}`);
        return /REST +(http:\S+)\/rest\//.exec(output)?.[1];
      });
      return broker;
    } catch (error) {
      await broker[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    this.#child.kill();
    await once(this.#child, "exit");
  }
}
