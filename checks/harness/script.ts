import { type ChildProcess, spawn } from "node:child_process";
import { type Line, Lines } from "./lines.ts";

/** A process that reads orders from its standard input and prints reports, both as one JSON object a line. */
export class Script {
  readonly lines = new Lines();
  readonly #child: ChildProcess;

  constructor(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.#child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] });
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
