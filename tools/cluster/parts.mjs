// Every process of the cluster, and how they stop together.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Signals for the parts that must not get SIGTERM: at SIGTERM, PostgreSQL waits until its clients disconnect. */
const endSignals = { database: "SIGINT" };
const guardFile = fileURLToPath(new URL("./guard.mjs", import.meta.url));

export class Parts {
  #parts = [];
  #guard = spawn(process.execPath, [guardFile], { stdio: ["pipe", "ignore", "inherit"], detached: true });
  #hasStarted = false;
  #ending;

  get isEnding() {
    return this.#ending !== undefined;
  }

  /** Registers a process right after its start. */
  register(part) {
    if (part.pid !== undefined) this.#guard.stdin.write(`${part.pid}\n`);
    this.#parts.push(part);
    void part.exited.then((how) => this.#noteExit(part, how));
  }

  /** Call it when all nodes are ready. From then on, the cluster continues if a node ends. */
  noteStart() {
    this.#hasStarted = true;
  }

  /** Stops all parts and this process: first the nodes, then the servers that they need. */
  async end(code) {
    this.#ending ??= this.#end();
    await this.#ending;
    process.exit(code);
  }

  async #end() {
    if (this.#parts.length > 0) console.error("Ending …");
    const nodes = this.#parts.filter(isNode);
    await Promise.all(nodes.map((part) => part.stop()));
    const others = this.#parts.filter((part) => !isNode(part));
    await Promise.all(others.map((part) => part.stop(endSignals[part.name])));
    this.#guard.stdin.end("done\n");
  }

  /** Stops the cluster if the chain or the database ended, or a node before all were ready. Later a node may end: the user stops and restarts nodes by hand. */
  #noteExit(part, how) {
    if (this.isEnding) return;
    console.error(part.describe(how));
    if (!isNode(part) || !this.#hasStarted) void this.end(1);
    else console.error(`Start it again, in another terminal, with\n  ${part.restartCommand}`);
  }
}

function isNode({ name }) {
  return name.startsWith("node-");
}
