import { isBrokerError } from "@stele/wire";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { Worker } from "node:worker_threads";
import { describe, expect, onTestFinished, test } from "vitest";
import { ManualClock } from "./testing/manual-clock.ts";
import { notificationTo } from "./testing/notification.ts";
import { startReceiver } from "./testing/receiver.ts";
import { attemptAt, makeSink, unaborted } from "./testing/sink.ts";
import type { WebhookSinkOptions } from "./webhook-sink.ts";

describe("the address guard", () => {
  test.each([
    ["http://127.0.0.1/", "callbacks may not reach the address 127.0.0.1"],
    ["http://2130706433/", "callbacks may not reach the address 127.0.0.1"],
    ["http://0x7f000001/", "callbacks may not reach the address 127.0.0.1"],
    ["http://017700000001/", "callbacks may not reach the address 127.0.0.1"],
    ["http://127.1/", "callbacks may not reach the address 127.0.0.1"],
    ["http://0/", "callbacks may not reach the address 0.0.0.0"],
    ["http://[::ffff:10.0.0.1]/", "callbacks may not reach the address ::ffff:a00:1"],
    ["http://169.254.169.254/latest/meta-data/", "callbacks may not reach the address 169.254.169.254"],
    ["http://[fd00:ec2::254]/", "callbacks may not reach the address fd00:ec2::254"],
    ["http://localhost/", "callbacks may not reach the host's addresses"],
    ["http://user:hunter2@example.com/", "it contains a user name or a password"],
    ["gopher://example.com/", "the scheme is gopher, it must be http or https"],
    ["http://93.184.216.34/", ""],
    ["https://[2606:4700:4700::1111]:8443/hook", ""],
  ])("at subscribe, the fault of %s is '%s'", async (url, fault) => {
    expect(await faultOf(url)).toBe(fault);
  });

  test("at subscribe, judges a name by the addresses that it resolves to", async () => {
    expect(await faultOf("http://a.example/", resolvesTo("93.184.216.34"))).toBe("");
    expect(await faultOf("http://a.example/", resolvesTo("10.0.0.1"))).toContain("may not reach");
    expect(await faultOf("http://a.example/", resolvesTo("10.0.0.1", "93.184.216.34"))).toBe("");
    expect(await faultOf("http://a.example/", { ...resolvesTo("10.0.0.1"), allowNetworks: ["10.0.0.0/24"] })).toBe("");
    expect(await faultOf("http://localhost:8080/", { allowLoopback: true })).toBe("");
  });

  test("refuses loopback ports below 1024, at subscribe and at connection time", async () => {
    const fault = "callbacks may not reach loopback port 80, only ports from 1024 on";
    const { resolver } = resolvesTo("127.0.0.1", "::1");
    for (const url of ["http://127.0.0.1/", "http://localhost/", "http://a.example/"]) {
      expect(await faultOf(url, { allowLoopback: true, resolver })).toBe(fault);
      const outcome = await attemptAt(url, { resolver });
      const reason = expect.stringMatching(/^callbacks may not reach the address (127|::1)/);
      expect(outcome).toEqual({ status: "failed", reason });
    }
  });

  test("refuses ports that the Fetch standard blocks, at subscribe and at each attempt", async () => {
    for (const url of ["http://93.184.216.34:25/", "https://a.example:6667/", "http://127.0.0.1:10080/"]) {
      expect(await faultOf(url)).toMatch(/^callbacks may not reach port \d+$/);
      expect(await attemptAt(url)).toMatchObject({
        reason: expect.stringMatching(/^the url cannot be called: callbacks may not reach port \d/),
      });
    }
  });

  test("at subscribe, accepts a name that cannot be resolved", async () => {
    expect(await faultOf("http://a.example/", { resolver: findNothing })).toBe("");
  });

  test.each(["http://127.0.0.1", "http://localhost", "http://[::ffff:127.0.0.1]"])(
    "at connection time, refuses %s and sends nothing",
    async (origin) => {
      await using receiver = await startReceiver((response) => response.end());
      const outcome = await attemptAt(`${origin}:${receiver.port}/`, { allowLoopback: false });
      expect(outcome).toEqual({
        status: "failed",
        reason: expect.stringMatching(/^callbacks may not reach the address /),
      });
      expect(receiver.connectionCount()).toBe(0);
    },
  );

  test("refuses a name that first resolves to a public address and then to loopback (DNS rebinding)", async () => {
    await using receiver = await startReceiver((response) => response.end());
    const answers = [["93.184.216.34"], ["127.0.0.1"]];
    const resolver = async () => answers.shift() ?? ["127.0.0.1"];
    const sink = makeSink({ allowLoopback: false, resolver });
    const url = `http://rebinding.example:${receiver.port}/`;
    await sink.checkTarget(notificationTo({ url }).subscription);
    const outcome = await sink.attempt(notificationTo({ url }), unaborted);
    expect(outcome).toEqual({ status: "failed", reason: "callbacks may not reach the address 127.0.0.1" });
    expect(receiver.connectionCount()).toBe(0);
  });

  test("connects only to a name's allowed addresses, with one look-up per attempt", async () => {
    await using receiver = await startReceiver((response) => response.end());
    let lookups = 0;
    const resolver = async () => {
      lookups += 1;
      return ["10.0.0.1", "127.0.0.1"];
    };
    const outcome = await attemptAt(`http://mixed.example:${receiver.port}/`, { resolver });
    expect(outcome).toEqual({ status: "accepted" });
    expect(receiver.requests[0]?.headers.host).toBe(`mixed.example:${receiver.port}`);
    expect(lookups).toBe(1);
  });

  test.runIf(process.platform === "linux")(
    "reaches a receiver that drops the first SYN, although the name's other address leads nowhere",
    async () => {
      const { port, accept } = await startBusyReceiver();
      const attempting = attemptAt(`http://busy.example:${port}/`, resolvesTo("127.0.0.1", "::1"));
      await expect.poll(() => isConnecting(port)).toBe(true);
      accept(); // TCP sends another SYN after a second.
      expect(await attempting).toEqual({ status: "accepted" });
    },
  );

  test.runIf(process.platform === "linux")(
    "reaches a receiver at the second address of its name within a timeout of two seconds",
    async () => {
      const { port } = await startBusyReceiver();
      const server = createServer((_request, response) => response.end()).listen(port, "127.0.0.2");
      onTestFinished(() => void server.close());
      await once(server, "listening");
      const names = resolvesTo("127.0.0.1", "127.0.0.2");
      expect(await attemptAt(`http://busy.example:${port}/`, { ...names, timeoutMs: 2_000 })).toEqual({
        status: "accepted",
      });
    },
  );

  test("an attempt at a name that does not exist fails with that reason", async () => {
    const outcome = await attemptAt("http://nowhere.example/", { resolver: findNothing });
    expect(outcome).toEqual({ status: "failed", reason: "the host name was not found" });
  });

  test("a look-up that never ends fails only its own attempt, and does not block a new subscription", async () => {
    const clock = new ManualClock();
    const resolver = async (): Promise<readonly string[]> => {
      setImmediate(() => clock.expire());
      return await new Promise(() => {});
    };
    const outcome = await attemptAt("http://slow.example/", { resolver, clock });
    expect(outcome).toEqual({ status: "failed", reason: "the deadline of 10000 ms passed" });
    expect(await faultOf("http://slow.example/", { resolver, clock })).toBe("");
  });
});

/** Whether a connection to the port waits for the receiver's answer to its SYN. Linux lists addresses and states as hexadecimal numbers; 02 is SYN_SENT. */
function isConnecting(port: number): boolean {
  const remote = `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return readFileSync("/proc/net/tcp", "utf8").includes(` ${remote} 02 `);
}

/** A receiver whose queue of connections is full until `accept` is called: until then, Linux drops each further SYN. */
async function startBusyReceiver(): Promise<{ readonly port: number; readonly accept: () => void }> {
  const lock = new Int32Array(new SharedArrayBuffer(4));
  const program = `
    const { createServer } = require("node:http");
    const { parentPort, workerData } = require("node:worker_threads");
    const server = createServer((_request, response) => response.end());
    server.listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(workerData, 0, 0);
    });`;
  const worker = new Worker(program, { eval: true, workerData: lock });
  const accept = (): void => {
    Atomics.store(lock, 0, 1);
    Atomics.notify(lock, 0);
  };
  const [port] = (await once(worker, "message")) as [number]; // What the program posts.
  const fillers = [1, 2].map(() => connect(port, "127.0.0.1"));
  onTestFinished(async () => {
    accept();
    for (const filler of fillers) filler.destroy();
    await worker.terminate();
  });
  await Promise.all(fillers.map((filler) => once(filler, "connect")));
  return { port, accept };
}

async function faultOf(url: string, options: Partial<WebhookSinkOptions> = {}): Promise<string> {
  try {
    await makeSink({ allowLoopback: false, ...options }).checkTarget(notificationTo({ url }).subscription);
    return "";
  } catch (error) {
    if (!isBrokerError(error, "urlInvalid")) throw error;
    return error.message.replace("url is malformed or not allowed: ", "");
  }
}

function resolvesTo(...addresses: string[]): Required<Pick<WebhookSinkOptions, "resolver">> {
  return { resolver: async () => addresses };
}

async function findNothing(): Promise<readonly string[]> {
  throw Object.assign(new Error("getaddrinfo"), { code: "ENOTFOUND" });
}
