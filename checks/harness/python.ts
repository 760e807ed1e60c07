import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { type Line, Lines } from "./lines.ts";

/** A Python with the clients of the journeys; where the variable names one, no test with them may be left out. */
const chosen = process.env["CHECKS_PYTHON"];
const python = chosen ?? "python3";

/** Debian's own Python, which sees what apt-get installs; the variable says `required` where no test with it may be left out. */
export const debianPython = "/usr/bin/python3";
const isDebianRequired = process.env["CHECKS_DEBIAN_PYTHON"] === "required";

/** Whether tests with a client run here: a statement that imports it. */
export function canImport(statement: string, program = python): boolean {
  if (program === debianPython ? isDebianRequired : chosen !== undefined) return true;
  try {
    execFileSync(program, ["-c", statement], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** A script that reads orders from its standard input and prints what it sees, as JSON, a line each. */
export class PythonScript {
  readonly lines = new Lines();
  readonly #child: ChildProcess;

  constructor(file: string, args: readonly string[], program = python) {
    // stomp.py asks the resolver for every name of this machine unless the variable is set.
    const env = { ...process.env, STOMP_SKIP_HOSTNAME_SCAN: "1" };
    this.#child = spawn(program, [file, ...args], { env, stdio: ["pipe", "pipe", "inherit"] });
    let text = "";
    this.#child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      for (const line of lines) this.lines.push(JSON.parse(line) as Line); // The scripts print nothing else.
    });
    this.#child.once("close", () => this.lines.end());
  }

  do(order: string, fields: object = {}): void {
    this.#child.stdin?.write(`${JSON.stringify({ do: order, ...fields })}\n`);
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
