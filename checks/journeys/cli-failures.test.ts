import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { Stele } from "@stele/client";
import { describe, expect, it, onTestFinished } from "vitest";
import { mainFile } from "../harness/broker-process.ts";
import { findFreePort } from "../harness/free-port.ts";
import { callStele, type CommandOptions, type CommandRun, runStele } from "../harness/stele-command.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { useReceivers, useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const running = useWorld(embeddedWorld);
const receivers = useReceivers();
const stele = (): Stele => new Stele({ url: running().broker.url });

async function run(args: readonly string[], options: Pick<CommandOptions, "env"> = {}): Promise<CommandRun> {
  using folder = createTempFolder();
  return callStele(args, { env: { STELE_URL: running().broker.url, HOME: folder.path, ...options.env } });
}

async function forward(topic: string, url: string): Promise<CommandRun> {
  await stele().open(topic);
  await stele().publishMany(["1", "2"].map((content) => ({ topic, content })));
  return run(["listen", topic, "--forward", url, "--after", "OFFSET_FIRST", "-n", "2", "-o", "ndjson"]);
}

describe("stele listen", () => {
  it("stele listen exits with 1 if nothing listens at the receiver's address, and says why", async () => {
    const { code, stdout, stderr } = await forward("nobody", `http://127.0.0.1:${await findFreePort()}/hook`);
    expect(code).toBe(1);
    expect(stdout).toContain('"error":"the connection was refused"');
    expect(stderr).toContain("stele: 2 of 2 callbacks were not accepted\n");
  });

  it("stele listen says that callbacks may not reach a port that fetch blocks, as the broker does", async () => {
    const { code, stdout } = await forward("blocked", "http://127.0.0.1:10080/hook");
    expect(code).toBe(1);
    expect(stdout).toContain('"error":"callbacks may not reach that port"');
    const subscribed = await fetch(
      `${running().broker.url}/rest/subscribe?topic=blocked&url=${encodeURIComponent("http://127.0.0.1:10080/hook")}`,
    );
    expect(await subscribed.text()).toContain("callbacks may not reach port 10080");
  });

  it("stele listen exits with 1 if the receiver refuses one of two callbacks", async () => {
    const receiver = await receivers((attempt, response) => {
      response.writeHead(attempt.event.eventId.includes("-1-") ? 500 : 204).end();
    });
    const { code, stdout, stderr } = await forward("fails", receiver.url);
    expect(code).toBe(1);
    expect(stdout).toContain('"status":500');
    expect(stderr).toContain("stele: 1 of 2 callbacks were not accepted\n");
  });

  it("stele listen accepts a 2xx answer once it has more than 64 KiB, as the broker does", async () => {
    const receiver = await receivers((_attempt, response) => void response.writeHead(200).write("x".repeat(70_000))); // And never ends.
    const { code, stdout } = await forward("endless", receiver.url);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining('"status":200') });
  });

  it("stele listen ends on SIGTERM while it waits for the receiver's answer, and says so", async () => {
    let end: (() => void) | undefined;
    const receiver = await receivers(() => end?.()); // It never answers.
    await stele().open("hung");
    await stele().publish("hung", "1");
    using folder = createTempFolder();
    const { code, stdout, stderr } = await runStele(
      ["listen", "hung", "--forward", receiver.url, "--after", "OFFSET_FIRST", "-o", "ndjson"],
      {
        env: { STELE_URL: running().broker.url, HOME: folder.path },
        onStderr: (_text, kill) => (end = () => kill("SIGTERM")),
      },
    );
    expect(code).toBe(1);
    expect(stdout).toContain('"error":"the command was ended before the answer"');
    expect(stderr).toContain("stele: 1 of 1 callbacks were not accepted\n");
  });
});

describe("an address that is the port of another protocol", () => {
  it("if the address is the port of another protocol, the error suggests that", async () => {
    const server = createServer((socket) => socket.once("data", () => socket.end("ERROR\n\n\0"))); // As STOMP answers.
    server.listen(0, "127.0.0.1");
    onTestFinished(() => void server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo; // The address of a TCP server.
    const { code, stderr } = await run(["topics", "list", "--url", `http://127.0.0.1:${port}`]);
    expect(code).toBe(1);
    expect(stderr).toContain("it does not speak HTTP; is this the port of another protocol?");
  });
});

describe("stele topics open", () => {
  it("stele topics open prints the topics before the one that failed, and opens none after it", async () => {
    const { code, stdout, stderr } = await run(["topics", "open", "a b", "bad+", "never", "-o", "ndjson"]);
    expect(code).toBe(1);
    expect(stdout).toBe('{"topic":"a b","state":"open"}\n');
    expect(stderr).toContain("bad+");
    expect(await stele().exist("never")).toBe(false);
  });
});

describe("stele bench", () => {
  it("stele bench prints the first failure and no percentiles if no publish succeeded", async () => {
    const { code, stdout, stderr } = await run(["bench", "-n", "2", "--bytes", "2000000", "-o", "ndjson"]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      failed: 2,
      eventsPerSecond: 0,
      latencyMs: { p50: null, p90: null, p99: null, max: null },
    });
    expect(stderr).toMatch(/2 of 2 publishes failed, the first one: .*over 1048576 bytes/);
    expect((await run(["bench", "-n", "1", "--bytes", "2000000"])).stdout).not.toContain("P50");
  });
});

describe("stele event --proof", () => {
  it("stele event --proof prints one line with -o ndjson, and several lines in the other forms", async () => {
    await stele().open("proven");
    const { eventId } = await stele().publish("proven", "x");
    const linesIn = async (form: string): Promise<number> => {
      const { stdout } = await run(["event", eventId, "--proof", "-o", form]);
      expect(JSON.parse(stdout)).toBeTypeOf("object");
      return stdout.trim().split("\n").length;
    };
    expect(await linesIn("ndjson")).toBe(1);
    expect(await linesIn("json")).toBeGreaterThan(1);
    expect(await linesIn("table")).toBeGreaterThan(1);
  });
});

describe.skipIf(process.platform !== "linux")("a command whose output cannot be written", () => {
  const program = ["bash", "-c", '"$0" "$@" > /dev/full', process.execPath, mainFile];

  it.each([
    ["key create", ["key", "create", "--principal", "p", "--role", "admin"], 1],
    ["start --help", ["start", "--help"], 1],
    ["verify --help", ["verify", "--help"], 2],
    ["scrub --help", ["scrub", "--help"], 2],
  ])("stele %s exits with an error if its output cannot be written", async (_, args, code) => {
    using folder = createTempFolder();
    const run = await runStele(args, { program, env: { STELE_DATA_DIR: folder.path } });
    expect(run).toMatchObject({ code, stderr: expect.stringContaining("stele: the output is lost: ENOSPC") });
  });
});
