import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { Stele } from "@stele/client";
import { describe, expect, it } from "vitest";
import { mainFile } from "../harness/broker-process.ts";
import { callStele, type CommandOptions, type CommandRun, runStele } from "../harness/stele-command.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const running = useWorld(embeddedWorld);
const stele = (): Stele => new Stele({ url: running().broker.url });

async function pub(args: readonly string[], options: Pick<CommandOptions, "input"> & { url?: string } = {}) {
  using folder = createTempFolder();
  const { url = running().broker.url, ...rest } = options;
  return callStele(["pub", ...args], { ...rest, env: { STELE_URL: url, HOME: folder.path } });
}

/** Parses the output of `-o ndjson`. */
function rowsOf({ stdout }: CommandRun): readonly Record<string, unknown>[] {
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>); // As docs/cli.md describes.
}

/** Starts a proxy that forwards one request, drops its answer, and stops listening. Returns its URL. */
async function startLosingProxy(): Promise<string> {
  const server = createServer((request, response) => {
    server.close();
    void forward(request).finally(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function forward(request: IncomingMessage): Promise<void> {
  const headers = { "content-type": "application/json" };
  await fetch(`${running().broker.url}${request.url}`, { method: "POST", headers, body: await buffer(request) });
}

describe("stele pub, when a publish fails or its outcome is unknown", () => {
  it("stele pub refuses an argument that is not UTF-8, because Node.js would change its bytes", async () => {
    await stele().open("latin");
    const script = `exec "$0" "$1" pub latin "$(printf 'caf\\351')" --url "$2"`;
    const program = ["sh", "-c", script, process.execPath, mainFile, running().broker.url];
    expect(await runStele([], { program })).toEqual({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^stele: an argument has bytes that are not UTF-8.*on stdin\n$/),
    });
    expect(await stele().state("latin")).toMatchObject({ sequenceNumber: 0 });
  });

  it("stele backup refuses a path that is not UTF-8, and does not suggest stdin", async () => {
    const script = `exec "$0" "$1" backup "$(printf 'caf\\351')"`;
    const run = await runStele([], { program: ["sh", "-c", script, process.execPath, mainFile] });
    expect(run).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/not UTF-8.*use a path or a name without them\n$/),
    });
  });

  it("stele pub --once reports an unknown outcome after a lost answer, and prints the key with which each event can be published again", async () => {
    await stele().open("lost");
    const run = await pub(["lost", "--once", "-o", "ndjson"], { input: "1\n2\n", url: await startLosingProxy() });
    expect(run).toMatchObject({
      code: 1,
      stderr:
        "stele: outcome unknown for 2 of 2 events: publish each again with the key in its row, which prevents a duplicate\n",
    });
    const rows = rowsOf(run);
    expect(rows).toMatchObject([{ error: { wasRefused: false } }, { error: { wasRefused: false } }]);
    for (const [index, { once: key }] of rows.entries()) {
      expect(await pub(["lost", String(index + 1), "--once", String(key)])).toMatchObject({ code: 0 });
    }
    expect(await stele().state("lost")).toMatchObject({ sequenceNumber: 2 });
  });

  it("stele pub refuses an empty key of --once, which a script may pass by mistake", async () => {
    await stele().open("keyless");
    for (const args of [["x"], ["--whole"]]) {
      const { code, stderr } = await pub(["keyless", ...args, "--once", ""], { input: "x" });
      expect({ code, stderr }).toEqual({ code: 2, stderr: "stele: the key of --once is empty\n" });
    }
    expect(await stele().state("keyless")).toMatchObject({ sequenceNumber: 0 });
  });

  it("stele pub suggests opening a topic that does not exist", async () => {
    const { code, stderr } = await pub(["never-opened", "x"]);
    expect(code).toBe(1);
    expect(stderr).toBe(
      "stele: 1 of 1 events were not published; open the topic first, with --open or stele topics open\n",
    );
  });

  it("stele pub without --once suggests checking the topic after a lost answer", async () => {
    await stele().open("unnamed");
    const { code, stdout, stderr } = await pub(["unnamed", "x"], { url: await startLosingProxy() });
    expect(code).toBe(1);
    expect(stdout).toContain("unknown: http://127.0.0.1");
    expect(stderr).toContain("outcome unknown for 1 of 1 events: check the topic");
  });
});

describe("stele pub from stdin", () => {
  it("stele pub ends on the first SIGTERM while it waits for a line", async () => {
    await stele().open("waits");
    using folder = createTempFolder();
    const env = { PATH: process.env["PATH"], STELE_URL: running().broker.url, HOME: folder.path };
    const child = spawn(process.execPath, [mainFile, "pub", "waits"], { env, stdio: ["pipe", "pipe", "ignore"] });
    child.stdin.write("1\n");
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    expect(await once(child, "close")).toEqual([1, null]);
  });

  it("stele pub publishes each line of stdin with exactly its bytes", async () => {
    await stele().open("bytes");
    const input = Buffer.from([0xff, 0x00, 0x0a, 0xc3, 0x0d, 0x0a]);
    const rows = rowsOf(await pub(["bytes", "-o", "ndjson"], { input }));
    const contents = [];
    for (const { eventId } of rows) contents.push([...(await stele().getEvent(String(eventId))).bytes()]);
    expect(contents).toEqual([[0xff, 0x00], [0xc3]]);
  });

  it("stele pub keeps the data of a CloudEvent byte for byte", async () => {
    await stele().open("cloud");
    const data = '{"a":12345678901234567890, "a":1.0}';
    const input = `{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"cloud","data":${data}}\n`;
    const [row] = rowsOf(await pub(["--cloudevents", "--once", "-o", "ndjson"], { input }));
    expect((await stele().getEvent(String(row?.["eventId"]))).text()).toBe(data);
  });
});
