import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { Client } from "../harness/client.ts";
import { findFreePort, findFreePorts } from "../harness/free-port.ts";
import { hasPostgres, titleOf } from "../harness/postgres.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const nodeCount = 3;
/** Consecutive restarts. An anvil that lost its first block may by chance make the same block again, but not this often. */
const restartCount = 4;
const msPerSecond = 1000;
const startTimeoutMs = 90_000;
const timeoutMs = 180_000;
/** If the tests run as root, PostgreSQL runs as another user, who needs access to its folder. */
const enterable = 0o755;

describe.runIf(hasPostgres)(titleOf("npm run cluster"), () => {
  it(
    "npm run cluster starts nodes that answer any call and take over from one another, stops them all, and restarts with all data",
    async () => {
      using folder = createTempFolder();
      chmodSync(folder.path, enterable);
      const flags = await chooseFlags(join(folder.path, "data"));
      await using receiver = await startReceiver();
      const eventIds: string[] = [];
      for (const isFirst of [true, false]) {
        await using cluster = await RunningCluster.start(flags);
        for (const call of cluster.calls) expect(`${call} ${(await fetch(call)).status}`).toBe(`${call} 200`);
        if (isFirst) await cluster.client(1).subscribe({ topic: "orders/#", url: receiver.url });
        for (const eventId of eventIds) expect((await cluster.client(2).getEvent(eventId)).eventId).toBe(eventId);
        eventIds.push(await publishAndWait(cluster.client(0), receiver));
        process.kill(cluster.pidOf("node-1"), "SIGKILL");
        await until("two nodes are left", async () => {
          return Object.keys(await cluster.client(2).listSubscriptions()).length === nodeCount - 1;
        });
        eventIds.push(await publishAndWait(cluster.client(1), receiver));
        expect(await cluster.stop()).toBe(0);
        expect(cluster.pids.filter(isAlive)).toEqual([]);
      }
    },
    timeoutMs,
  );

  it(
    "npm run cluster keeps its chain over restarts, with the current time in new blocks",
    async () => {
      using folder = createTempFolder();
      chmodSync(folder.path, enterable);
      const flags = ["--nodes", "1", ...(await chooseFlags(join(folder.path, "data")))];
      const eventIds: string[] = [];
      for (let start = 0; start <= restartCount; start += 1) {
        await using cluster = await RunningCluster.start(flags);
        const topic = `orders/${start}`;
        const openedAtS = Math.floor(Date.now() / msPerSecond); // Blocks have whole seconds.
        await cluster.client(0).open(topic);
        const { createdTimestamp } = await cluster.client(0).state(topic);
        expect(createdTimestamp / msPerSecond).toBeGreaterThanOrEqual(openedAtS);
        for (const eventId of eventIds) expect((await cluster.client(0).getEvent(eventId)).eventId).toBe(eventId);
        const { eventId } = await cluster.client(0).publish(topic, "x");
        eventIds.push(eventId);
        expect(await cluster.stop()).toBe(0);
      }
    },
    timeoutMs,
  );

  it(
    "npm run cluster keeps running when a node stops, and prints a command that restarts the node",
    async () => {
      using folder = createTempFolder();
      chmodSync(folder.path, enterable);
      const flags = ["--nodes", "1", ...(await chooseFlags(join(folder.path, "data")))];
      await using cluster = await RunningCluster.start(flags);
      await cluster.client(0).open("orders/new");
      const { eventId } = await cluster.client(0).publish("orders/new", "x");
      process.kill(cluster.pidOf("node-1"), "SIGTERM");
      await until("the command reports the end of the node", () => cluster.output.includes("Start it again, in"));
      // The printed command must keep the user's settings from the node.
      const env = { ...process.env, STELE_PORT: "1", STELE_LOG_LEVEL: "none" };
      const node = spawn("sh", ["-c", `exec ${cluster.commandOf("node-1")}`], { env, stdio: "ignore" });
      try {
        const isBack = (): Promise<boolean> =>
          cluster
            .client(0)
            .isReady()
            .catch(() => false);
        await until("the node is back", isBack, { timeoutMs: startTimeoutMs });
        expect((await cluster.client(0).getEvent(eventId)).eventId).toBe(eventId);
      } finally {
        node.kill("SIGKILL");
      }
      expect(await cluster.stop()).toBe(0);
    },
    timeoutMs,
  );

  it("npm run cluster exits with 2 for a wrong flag, and names the flag", async () => {
    await using cluster = RunningCluster.spawn(["--nodes", "none"]);
    expect(await cluster.exited).toBe(2);
    expect(cluster.output).toContain('--nodes: "none"');
  });
});

/** Publishes an event, and returns its eventId when the receiver has accepted the event. */
async function publishAndWait(client: Client, receiver: Receiver): Promise<string> {
  const { eventId } = await client.publish("orders/new", "x");
  await receiver.waitFor("the receiver has accepted the event", () =>
    receiver.accepted().some((event) => event.eventId === eventId),
  );
  return eventId;
}

async function chooseFlags(data: string): Promise<readonly string[]> {
  const ports = {
    "--port": await findFreePorts(nodeCount),
    "--chain-port": await findFreePort(),
    "--database-port": await findFreePort(),
  };
  return ["--data", data, ...Object.entries(ports).flatMap(([flag, port]) => [flag, String(port)])];
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A running `npm run cluster`. Its output names the addresses and process identifiers of the nodes. */
class RunningCluster implements AsyncDisposable {
  readonly exited: Promise<number | null>;
  output = "";
  readonly #child: ChildProcess;
  readonly #clients: Client[] = [];

  private constructor(flags: readonly string[]) {
    this.#child = spawn("npm", ["run", "--silent", "cluster", "--", ...flags], { cwd: root });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.output += chunk.toString();
      });
    }
    this.exited = new Promise((resolve) => this.#child.once("close", resolve));
  }

  static spawn(flags: readonly string[]): RunningCluster {
    return new RunningCluster(flags);
  }

  /** Resolves when the command prints that its nodes are ready. */
  static async start(flags: readonly string[]): Promise<RunningCluster> {
    const cluster = new RunningCluster(flags);
    try {
      const isUp = (): boolean => cluster.output.includes("Ctrl-C ends everything");
      const hasEnded = (): boolean => cluster.#child.exitCode !== null;
      await until("the nodes are ready", () => isUp() || hasEnded(), { timeoutMs: startTimeoutMs });
      if (!isUp()) throw new Error("the command has ended");
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw new Error(`${String(error)}:\n${cluster.output}`, { cause: error });
    }
    const urls = [...cluster.output.matchAll(/^ +node-\d +(http:\S+) /gm)].map(([, url = ""]) => url);
    cluster.#clients.push(...urls.map((url) => new Client(url)));
    return cluster;
  }

  /** The addresses of the example calls that the command prints. */
  get calls(): readonly string[] {
    return [...this.output.matchAll(/^ +curl .*'(http:\S+)'$/gm)].map(([, url = ""]) => url);
  }

  /** The process identifiers of the nodes. */
  get pids(): readonly number[] {
    return [...this.output.matchAll(/^ +node-\d .* process (\d+)$/gm)].map(([, pid]) => Number(pid));
  }

  client(index: number): Client {
    const client = this.#clients[index];
    if (client === undefined) throw new Error(`there is no node ${index}:\n${this.output}`);
    return client;
  }

  pidOf(name: string): number {
    return Number(new RegExp(`^ +${name} .* process (\\d+)$`, "m").exec(this.output)?.[1]);
  }

  /** The command that restarts the node. */
  commandOf(name: string): string {
    return new RegExp(`^ +(sh .*${name}\\.sh.*)$`, "m").exec(this.output)?.[1] ?? "";
  }

  /** Sends Ctrl-C; returns the exit code. */
  stop(): Promise<number | null> {
    this.#child.kill("SIGINT");
    return this.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) await client[Symbol.asyncDispose]();
    await this.stop();
  }
}
