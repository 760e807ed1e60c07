// Every process of the cluster, and their common end.
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** How a part ends, where it is not by SIGTERM: PostgreSQL waits for its clients at that. */
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

  /** Takes care of a process from its first moment. */
  adopt(part) {
    if (part.pid !== undefined) this.#guard.stdin.write(`${part.pid}\n`);
    this.#parts.push(part);
    void part.exited.then((how) => this.#noteExit(part, how));
  }

  /** To be called when all nodes are up: from then on they may end. */
  noteStart() {
    this.#hasStarted = true;
  }

  /** Ends the process with all its parts, in order: first the nodes, last what they need. */
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

  /** Without the chain or the database nothing goes on. Nodes come and go: the user ends them, and starts them again by hand. */
  #noteExit(part, how) {
    if (this.isEnding) return;
    console.error(part.describe(how));
    if (!isNode(part) || !this.#hasStarted) void this.end(1);
    else console.error(`Start it again, in another terminal, with\n  ${part.startAgain}`);
  }
}

function isNode({ name }) {
  return name.startsWith("node-");
}
