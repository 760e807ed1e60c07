import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Stele } from "@stele/client";
import { verifyWebhook } from "@stele/client/webhook";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { mainFile } from "../harness/broker-process.ts";
import { findFreePort } from "../harness/free-port.ts";
import { type Receiver, startReceiver } from "../harness/receiver.ts";
import { callStele, type CommandOptions, type CommandRun, runStele } from "../harness/stele-command.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { masked } from "./cli/masked.ts";

const forms = ["table", "json", "ndjson"] as const;
const folder = createTempFolder();
let world: RunningWorld;
let stele: Stele;
let receiver: Receiver;
beforeAll(async () => {
  world = await embeddedWorld.start();
  stele = new Stele({ url: world.broker.url });
  receiver = await startReceiver();
});
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Runs a command in this process. Use {@link runProcess} if the process itself matters. */
function run(args: readonly string[], options: Pick<CommandOptions, "env" | "input"> = {}): Promise<CommandRun> {
  return callStele(args, { ...options, env: { ...environment(), ...options.env } });
}

function runProcess(args: readonly string[], options: CommandOptions = {}): Promise<CommandRun> {
  return runStele(args, { ...options, env: { ...environment(), ...options.env } });
}

function environment(): Record<string, string> {
  return { STELE_URL: world.broker.url, HOME: folder.path };
}

function mask(text: string): string {
  return masked(text, { [world.broker.url]: "http://BROKER", [receiver.url]: "http://RECEIVER" });
}

describe.each(forms)("commands with -o %s", (form) => {
  const topic = `orders/${form}`;
  const inForm = (...args: string[]): Promise<CommandRun> => run([...args, "-o", form]);
  const shown = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await inForm(...args);
    expect({ code, stderr: mask(stderr).replaceAll(/watching .*\n/g, "") }).toEqual({ code: 0, stderr: "" });
    return mask(stdout);
  };

  it("opens, publishes, shows and tails", async () => {
    expect(await shown("topics", "open", topic)).toMatchSnapshot("topics open");
    expect(await shown("pub", topic, '{"order":1}', "--ext", "svc-format=json")).toMatchSnapshot("pub");
    const lines = await run(["pub", topic, "-o", form, "--once"], { input: "2\n\n3 \u{1b}[2J\r\n" });
    expect(mask(lines.stdout)).toMatchSnapshot("pub lines");
    expect(await shown("tail", topic, "--after", "OFFSET_FIRST", "-n", "3")).toMatchSnapshot("tail");
    expect(await shown("topics", "show", topic)).toMatchSnapshot("topics show");
    const { value: event } = await stele.admin.events(topic).next();
    expect(await shown("event", event.eventId)).toMatchSnapshot("event");
    expect(await shown("topics", "close", topic)).toMatchSnapshot("topics close");
  });

  it("pauses, shows, skips, replays and resumes subscriptions", async () => {
    const held = `held/${form}`;
    await stele.open(held);
    const id = await world.client.subscribe({ topic: held, url: receiver.url });
    expect(await shown("subs", "pause", id)).toMatchSnapshot("pause");
    await stele.publishMany(["1", "2", "3"].map((content) => ({ topic: held, content })));
    expect(await shown("subs", "list", "--topic", held)).toMatchSnapshot("list");
    expect(await shown("subs", "show", id)).toMatchSnapshot("show");
    expect(await shown("subs", "skip", id, "--to", "1")).toMatchSnapshot("skip");
    expect(await shown("subs", "replay", id, "--from", "OFFSET_FIRST", "--dry-run")).toMatchSnapshot("replay");
    expect(await shown("subs", "resume", "--topic", held)).toMatchSnapshot("resume");
  });

  it("runs bench, and doctor without a failure", async () => {
    const bench = await inForm("bench", `bench/${form}`, "--events", "20", "--concurrency", "4");
    expect(mask(bench.stdout.replaceAll(/\d+(\.\d+)?/g, "N"))).toMatchSnapshot("bench");
    const doctor = await shown("doctor");
    expect(doctor.replaceAll(/block \d+ of \d+/g, "block N of N")).toMatchSnapshot("doctor");
    expect(await shown("doctor", "--data-dir", world.dataDir)).toContain("GiB are free in");
  });

  it("calls a receiver for each event", async () => {
    const topic = `forwarded/${form}`;
    await stele.open(topic);
    await stele.publish(topic, "x");
    const secretFile = join(folder.path, "secret");
    writeFileSync(secretFile, "a secret");
    receiver.forget();
    const args = ["listen", topic, "--forward", receiver.url, "--after", "OFFSET_FIRST", "--secret-file", secretFile];
    const { code, stdout } = await run([...args, "-n", "1", "-o", form]);
    expect(code).toBe(0);
    expect(mask(stdout).replace(/("ms": ?|200 +)\d+/, "$1N")).toMatchSnapshot("listen");
    const [{ body, headers } = { body: "", headers: {} }] = receiver.attempts;
    expect(await verifyWebhook(body, headers, "a secret")).toMatchObject({ kind: "event", events: [{ topic }] });
  });

  it("adds and removes contexts", async () => {
    const env = { XDG_CONFIG_HOME: join(folder.path, form) };
    const add = ["context", "add", "here", "--url", "http://broker.example", "--key", "-o", form];
    const added = await run(add, { env, input: "a secret\n" });
    expect(added).toMatchObject({ code: 0, stderr: "" });
    expect(added.stdout).toMatchSnapshot("context add");
    expect(added.stdout).not.toContain("secret");
    expect(statSync(join(env.XDG_CONFIG_HOME, "stele", "contexts.json")).mode & 0o777).toBe(0o600);
    expect((await run(["context", "remove", "here", "-o", form], { env })).stdout).toMatchSnapshot("context remove");
  });

  it("writes what failed to stderr, and ends with exit code 1", async () => {
    const { code, stdout, stderr } = await inForm("topics", "show", "nowhere");
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: "",
      stderr: 'stele: topic not exist: "nowhere" (100101)\n',
    });
    const lines = await run(["pub", "nowhere", "-o", form], { input: "x\n" });
    expect(lines).toMatchObject({
      code: 1,
      stderr: "stele: 1 of 1 events were not published; open the topic first, with --open or stele topics open\n",
    });
    expect(mask(lines.stdout)).toMatchSnapshot("pub failed");
  });
});

describe("a client command", () => {
  const commands = [
    ["pub"],
    ["tail"],
    ["event"],
    ["listen"],
    ["bench"],
    ["doctor"],
    ...["list", "show", "open", "close"].map((name) => ["topics", name]),
    ...["list", "show", "pause", "resume", "retry", "skip", "replay", "dead-letters", "redeliver", "discard"].map(
      (name) => ["subs", name],
    ),
    ...["add", "use", "remove", "list"].map((name) => ["context", name]),
  ];

  it.each(commands)("the help of a client command has examples and output formats: %s %s", async (...words) => {
    const { code, stdout } = await run([...words.filter((word) => word !== undefined), "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("Examples:\n  ");
    expect(stdout).toContain("--output <format>");
  });

  it.each([
    [["nothing"], "unknown command"],
    [["topics", "list", "--colour"], "unknown option"],
    [["topics", "list", "-o", "xml"], "Allowed choices are table, json, ndjson"],
    [["topics", "show"], "missing required argument"],
    [["topics", "list", "--url", "ftp://x"], "not an http(s) URL: ftp://x"],
    [["topics", "list", "--admin-url", "ftp://x"], "not an http(s) URL: ftp://x"],
    [["topics", "list", "--url", "http://x:secret@h"], "the address of the broker contains a user name or a password"],
    [["doctor", "--url", "http://x:secret@h"], "the address of the broker contains a user name or a password"],
    [["context", "add", "c", "--url", "http://x:secret@h"], "--url contains a user name or a password"],
    [["topics", "list", "--context", "nobody"], "there is no context nobody"],
    [["topics", "list", "--context", "constructor"], "there is no context constructor"],
    [["listen", "t", "--forward", "localhost:3000/hook"], "not an http(s) URL: localhost:3000/hook"],
    [["pub"], "give a topic"],
    [["pub", "--cloudevents", "--open"], "--open needs a topic"],
    [["pub", "t", "x", "--whole"], "cannot be combined"],
    [["subs", "pause"], "give identifiers"],
    [["tail", "t", "--since", "soon"], "90s, 10m"],
    [["event", "x", "--key-file", "/nowhere"], "cannot be read"],
    [["event", "x", "--key-file", "/dev/null"], "/dev/null is empty"],
    [["context", "add", "keyless", "--url", "http://x", "--key"], "stdin is empty"],
    [["listen", "t", "--forward", "http://x", "--secret-file", "/dev/null"], "/dev/null is empty"],
  ])("a client command exits with 2 for wrong arguments: %j", async (args, reason) => {
    const { code, stdout, stderr } = await run(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(reason);
  });

  it("a client command exits with 1 and names the address if no broker answers there", async () => {
    const port = await findFreePort();
    const { code, stderr } = await run(["topics", "show", "x", "--url", `http://127.0.0.1:${port}`]);
    expect(code).toBe(1);
    expect(stderr).toBe(`stele: http://127.0.0.1:${port} does not answer (ECONNREFUSED)\n`);
  });
});

describe("stele tail", () => {
  it("stele tail exits with 0 and complete JSON on Ctrl-C", async () => {
    await stele.open("ending");
    const { code, stdout } = await runTail("ending", async (kill) => kill("SIGINT"));
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual([]);
  });

  it("stele tail ends on the first SIGTERM while nothing reads its output", async () => {
    await stele.open("unread");
    await stele.publish("unread", "x".repeat(50_000));
    const template = "{{content}}".repeat(20); // More than a pipe holds.
    const argv = [mainFile, "tail", "unread", "--after", "OFFSET_FIRST", "--template", template];
    const env = { PATH: process.env["PATH"], ...environment() };
    const child = spawn(process.execPath, argv, { env, stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    let stderr = "";
    child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    await once(child.stdout, "readable");
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([1, null]);
    expect(stderr).toContain("nothing reads the output");
  });

  it("stele tail exits without an error when the reader of its output exits", async () => {
    await stele.open("piped");
    await stele.publishMany(["1", "2", "3"].map((content) => ({ topic: "piped", content })));
    const program = ["bash", "-c", 'node "$0" "$@" | head -n 1', mainFile];
    const { code, stdout, stderr } = await runProcess(
      ["tail", "piped", "--after", "OFFSET_FIRST", "-o", "ndjson", "-n", "3"],
      { program },
    );
    expect({ code, lines: stdout.split("\n").length }).toEqual({ code: 0, lines: 2 });
    expect(stderr).not.toContain("Error");
  });
});

/** Runs a tail, and calls `then` when the tail has begun. */
async function runTail(
  topic: string,
  then: (kill: (signal: NodeJS.Signals) => void) => Promise<void>,
): Promise<CommandRun> {
  let isWatching = false;
  let done: Promise<void> | undefined;
  const ended = await runProcess(["tail", topic, "-o", "json"], {
    onStderr: (text, kill) => {
      if (isWatching || !text.includes("watching")) return;
      isWatching = true;
      done = then(kill);
    },
  });
  await done;
  return ended;
}

describe("stele context", () => {
  it("a context gives other commands its address and its key, but not the key if --url or STELE_URL gives the address", async () => {
    const keys: (string | undefined)[] = [];
    await using listener = await listen((authorization) => keys.push(authorization));
    const env = { XDG_CONFIG_HOME: join(folder.path, "keys"), STELE_URL: "" };
    await run(["context", "add", "there", "--url", listener.url, "--key"], { env, input: "its-key\n" });
    await run(["topics", "show", "x"], { env });
    await run(["topics", "show", "x", "--url", listener.url], { env });
    await run(["topics", "show", "x"], { env: { ...env, STELE_URL: listener.url } });
    expect(keys).toEqual(["Bearer its-key", undefined, undefined]);
  });
});

/** A server that passes each request's credential to `onRequest` and refuses the request. */
async function listen(onRequest: (authorization: string | undefined) => void) {
  const server = createServer((request, response) => {
    onRequest(request.headers.authorization);
    response.end('{"code":100701,"message":"credential is missing or wrong"}');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
