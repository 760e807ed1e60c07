import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { Stele } from "@stele/client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findProgram } from "../harness/find-program.ts";
import { findFreePort } from "../harness/free-port.ts";
import { toQuickJava } from "../harness/java-options.ts";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { canRunChromium, startChromium } from "../harness/chromium.ts";
import { PageServer } from "./stomp/page-server.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const readme = readFileSync(new URL("../../examples/README.md", import.meta.url), "utf8");
const page = readFileSync(new URL("../../examples/browser/index.html", import.meta.url), "utf8");
const secret = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const python = process.env["CHECKS_PYTHON"] ?? "python3";

const languages = [
  { name: "TypeScript", canRun: true },
  { name: "Python", canRun: process.env["CHECKS_PYTHON"] !== undefined || findProgram(python) !== undefined },
  { name: "Java", canRun: process.env["CHECKS_JAVA"] === "required" || findProgram("javac") !== undefined },
  { name: "Go", canRun: process.env["CHECKS_GO"] === "required" || findProgram("go") !== undefined },
];

const port = await findFreePort();
const pages = await PageServer.start();
const running = useWorld(embeddedWorld, {
  env: { STELE_PORT: String(port), STELE_ALLOWED_ORIGINS: pages.origin, STELE_CALLBACK_CONSENT: "require" },
});
afterAll(() => pages[Symbol.asyncDispose]());

/** The commands below a heading of the README. */
function commandsOf(heading: string): readonly string[] {
  const block = new RegExp(`^## ${heading}\\n[^]*?^\`\`\`sh\\n([^]*?)^\`\`\`$`, "m").exec(readme)?.[1] ?? "";
  return block.trim().split("\n");
}

function commandOf(language: string, what: string): string {
  const found = commandsOf(language).find((command) => command.toLowerCase().includes(what));
  return found?.replace(/\bpython3\b/, python) ?? `echo no command for ${what} >&2; exit 1`;
}

/**
 * Kills the process group of a program when file descriptor 3 closes. It closes when the program exits, when {@link Program.end} is called, and when this
 * process ends in any way.
 */
const guard = "(read -r <&3; kill -KILL 0) > /dev/null 2>&1 & exec 3<&-";

/** A program in its own process group, because some programs start another process. */
class Program {
  output = "";
  errors = "";
  code: number | null = null;
  readonly #life: Duplex;

  constructor(command: string) {
    const env = { ...process.env, JDK_JAVA_OPTIONS: toQuickJava(process.env), STELE_URL: running().broker.url };
    const stdio = ["ignore", "pipe", "pipe", "pipe"] as const;
    const child = spawn("bash", ["-c", `${guard}\n${command}`], { cwd: root, env, detached: true, stdio: [...stdio] });
    this.#life = child.stdio[3] as Duplex; // Pipes beyond the standard ones are duplex.
    this.#life.on("error", () => {});
    child.stdout?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
    child.stderr?.on("data", (chunk: Buffer) => (this.errors += chunk.toString()));
    child.once("exit", () => this.end());
    child.once("close", (code) => (this.code = code));
  }

  /** Waits for `count` lines of output. The timeout is long, because a first run of Go compiles its library. */
  async lines(count: number): Promise<readonly string[]> {
    const whole = (): readonly string[] => this.output.split("\n").slice(0, -1);
    return until(`the program has printed ${count} lines`, () => this.#isFine() && whole().length >= count && whole(), {
      timeoutMs: 110_000,
    });
  }

  end(): void {
    this.#life.destroy();
  }

  #isFine(): true {
    if (this.code !== null && this.code !== 0) throw new Error(`exit ${this.code}: ${this.errors}`);
    return true;
  }
}

const programs: Program[] = [];
afterEach(() => {
  for (const program of programs.splice(0)) program.end();
});

function start(command: string): Program {
  const program = new Program(command);
  programs.push(program);
  return program;
}

it.each([
  ["exits", "sleep 1000 & echo $!"],
  ["is ended by the test", "sleep 1000 & echo $!; wait"],
])("a program that %s leaves no background process behind", async (how, command) => {
  const program = start(command);
  const [pid = ""] = await program.lines(1);
  if (how === "is ended by the test") program.end();
  await until("the process in the background ends", () => !isRunning(Number(pid)));
});

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe.each(languages.filter(({ canRun }) => canRun))("the examples in $name", ({ name }) => {
  const topic = `orders/${name.toLowerCase()}`;

  beforeAll(async () => {
    const compile = commandsOf(name).filter((command) => command.startsWith("npx tsc"));
    for (const command of compile) {
      const program = start(command);
      await until("the compiler ends", () => program.code !== null, { timeoutMs: 60_000 });
      expect({ code: program.code, output: program.output }).toEqual({ code: 0, output: "" });
    }
  });

  it("the examples publish, and tail without a gap over a restart of the broker and of the tail", async () => {
    const publish = commandOf(name, "publish");
    const [printed = ""] = await start(publish).lines(1);
    const [first] = /[0-9a-f]{8}-1-\d+/.exec(printed) ?? [];
    const tail = start(commandOf(name, "tail"));
    expect(idsOf(await tail.lines(1))).toEqual([first]);
    await running().stop();
    await running().resume();
    const second = await running().client.publish(topic, "second");
    expect(idsOf(await tail.lines(2))).toEqual([first, second.eventId]);
    tail.end();
    const third = await running().client.publish(topic, "third");
    const later = start(commandOf(name, "tail").replace("OFFSET_FIRST", second.eventId));
    expect(idsOf(await later.lines(1))).toEqual([third.eventId]);
  });

  it("the publish example exits with an error that says why the broker refuses a topic", async () => {
    const program = start(commandOf(name, "publish").replace(topic, "'a#'"));
    await until("the program ends", () => program.code !== null, { timeoutMs: 60_000 });
    expect(program.code).not.toBe(0);
    expect(program.errors).toMatch(/100106|topic/);
  });

  it("the tail example prints an event whose content is not text", async () => {
    const stele = new Stele({ url: running().broker.url });
    await stele.open(topic);
    const { eventId } = await stele.publish(topic, new Uint8Array([0xff]));
    const tail = start(commandOf(name, "tail"));
    await until("the event is printed", () => tail.output.includes(eventId) || tail.code !== null, {
      timeoutMs: 110_000,
    });
    expect(tail).toMatchObject({ code: null, output: expect.stringContaining(eventId) });
  });

  it("the tail example reconnects with the eventId of its last event", async () => {
    const places: (string | undefined)[] = [];
    const event = JSON.stringify({ topic, content: "eA==", extensions: {}, eventId: "2cf24dba-1-2" });
    const server = createServer(({ headers }, response) => {
      places.push(headers["last-event-id"] as string | undefined); // Node gives a list only for other headers.
      const isNdjson = headers.accept === "application/x-ndjson";
      response.writeHead(200, { "content-type": isNdjson ? "application/x-ndjson" : "text/event-stream" });
      response.end(isNdjson ? `${event}\n` : `id: 2cf24dba-1-2\ndata: ${event}\n\n`);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    start(`export STELE_URL=http://127.0.0.1:${(server.address() as AddressInfo).port}; ${commandOf(name, "tail")}`);
    await until("the tail reconnects", () => places.length > 1, { timeoutMs: 110_000 });
    server.close().closeAllConnections();
    expect(places[1]).toBe("2cf24dba-1-2");
  });

  it("the tail example ends with an error once nothing reads its output", async () => {
    const stele = new Stele({ url: running().broker.url });
    await stele.open(topic);
    // More than the pipe holds, and a reader that begins late: the tail still writes when `head` ends.
    for (let count = 0; count < 3; count += 1) await stele.publish(topic, "x".repeat(50_000));
    const program = start(`set -o pipefail; ${commandOf(name, "tail")} | (sleep 1; head -c 1)`);
    await until("the program ends", () => program.code !== null, { timeoutMs: 110_000 });
    expect(program.code).not.toBe(0);
  });

  it("the receive example with an empty secret exits, or accepts no callback that an empty secret signed", async () => {
    const own = await findFreePort();
    const command = commandOf(name, "receive").replace("9000", String(own)).replace(`whsec_${secret}`, "");
    const receiver = start(command);
    await until("the receiver ends or listens", () => receiver.code !== null || receiver.output.includes("listening"));
    if (receiver.code === null) expect(await statusesOf(`http://127.0.0.1:${own}/`, "")).not.toContain(204);
    else expect(receiver.errors).toContain("SECRET");
  });

  it("the receive example agrees to be called, receives signed callbacks, and refuses others", async () => {
    const own = await findFreePort();
    const receiver = start(commandOf(name, "receive").replace("9000", String(own)));
    expect(await receiver.lines(1)).toEqual([`listening ${own}`]);
    const url = `http://127.0.0.1:${own}/events`;
    const { client } = running();
    await client.open(topic);
    const id = await client.subscribe({ topic, url, secret: `whsec_${secret}` });
    const { eventId } = await client.publish(topic, "zwei ä");
    const [, line = ""] = await receiver.lines(2);
    expect(line).toMatch(new RegExp(`^${eventId} (${topic} )?zwei ä$`));
    await client.unSubscribe(id);
    expect(await statusesOf(url)).toEqual([204, 401, 401, 401]);
  });

  it("the receive example prints each event of a batch", async () => {
    const own = await findFreePort();
    const receiver = start(commandOf(name, "receive").replace("9000", String(own)));
    await receiver.lines(1);
    const { client } = running();
    const batched = `${topic}/batch`;
    await client.open(batched);
    const eventIds: string[] = [];
    for (const content of ["one", "two"]) eventIds.push((await client.publish(batched, content)).eventId);
    const url = `http://127.0.0.1:${own}/events`;
    await client.subscribe({ topic: batched, url, secret: `whsec_${secret}`, offset: "OFFSET_FIRST", batch: 2 });
    expect(idsOf(await receiver.lines(3)).slice(1)).toEqual(eventIds);
  });
});

// The TypeScript client repeats such a publish.
it.each(languages.filter(({ name, canRun }) => canRun && name !== "TypeScript"))(
  "the publish example in $name exits with an error if the broker answers TIMEOUT",
  async ({ name }) => {
    await using broker = await startTimingOut();
    const program = start(`export STELE_URL=${broker.url}; ${commandOf(name, "publish")}`);
    await until("the program ends", () => program.code !== null, { timeoutMs: 110_000 });
    expect(program.code).not.toBe(0);
    expect(program.errors).toContain("TIMEOUT");
  },
);

function idsOf(lines: readonly string[]): readonly (string | undefined)[] {
  return lines.map((line) => line.split(" ")[0]);
}

/** Imitates a broker that opens every topic, and answers every publish with TIMEOUT. */
async function startTimingOut() {
  const server = createServer((request, response) => {
    request.resume();
    const sent = { topic: "t", eventId: "", status: "TIMEOUT" };
    response.end(JSON.stringify(request.url?.includes("open") === true ? true : sent));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ...closing(server) };
}

function closing(server: Server): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: async () => {
      server.close().closeAllConnections();
      await once(server, "close");
    },
  };
}

/** The headers of a callback that the secret `own` signed at `time`, with a wrong signature before the right one. */
function sign(text: string, time: number, own: string): Readonly<Record<string, string>> {
  const digest = createHmac("sha256", Buffer.from(own, "base64")).update(`e.${time}.${text}`).digest("base64");
  return { "webhook-id": "e", "webhook-timestamp": String(time), "webhook-signature": `v1,AA== v1,${digest}` };
}

/** The receiver's statuses for a valid signature, for a signature of another body, for an old signature, and without a signature. */
async function statusesOf(url: string, own = secret): Promise<readonly number[]> {
  const body = JSON.stringify({
    subscriptionId: "s",
    event: { topic: "t", content: "eA==", extensions: {}, eventId: "e" },
  });
  const now = Math.floor(Date.now() / 1000);
  const all = [sign(body, now, own), sign(`${body} `, now, own), sign(body, now - 3600, own), {}];
  const statuses: number[] = [];
  for (const headers of all) statuses.push((await fetch(url, { method: "POST", body, headers })).status);
  return statuses;
}

describe.runIf(canRunChromium)("the example for browsers (needs Debian's chromium-headless-shell)", () => {
  it("the example publishes, and shows events without a gap over a restart of the broker", async () => {
    expect(commandsOf("Browser").join("\n")).toContain("examples/browser");
    const browser = await startChromium();
    try {
      const shown = await browser.newPage();
      const faults: string[] = [];
      shown.on("pageerror", ({ message }) => faults.push(message));
      const texts = (): Promise<readonly string[]> => shown.locator("li").allTextContents();
      await shown.goto(`${pages.add("/index.html", page)}?broker=${running().broker.url}`);
      await shown.getByRole("textbox", { name: "Content" }).fill("<b>first ü</b>");
      await shown.getByRole("button", { name: "Publish" }).click();
      await until("the first event is shown", async () => (await texts()).length === 1);
      await running().stop();
      await running().resume();
      await running().client.publish("orders/browser", "second");
      await until("the second event is shown", async () => (await texts()).length >= 2, { timeoutMs: 60_000 });
      expect({ texts: await texts(), faults }).toEqual({ texts: ["<b>first ü</b>", "second"], faults: [] });
    } finally {
      await browser.close();
    }
  });

  it.each([
    ["its last event", "", "2cf24dba-1-2"],
    ["the place of a reorg that removed its last event", "id: @1.1\nevent: resync\ndata: {}\n\n", "@1.1"],
  ])("the page continues after %s when a proxy has answered with 503", async (_what, notice, place) => {
    await using broker = await startBehindProxy(notice);
    const browser = await startChromium();
    try {
      const shown = await browser.newPage();
      await shown.goto(`${pages.add("/behind-proxy.html", page)}?broker=${broker.url}`);
      await until("the page has reconnected twice", () => broker.starts.length >= 3);
      expect(broker.starts.slice(0, 3)).toEqual(["OFFSET_FIRST", place, place]);
    } finally {
      await browser.close();
    }
  });
});

/**
 * Imitates a broker whose tails give one event and `notice` and end, behind a proxy that answers the second request for a tail with 503. `starts` has the
 * place at which each of these requests asks to start.
 */
async function startBehindProxy(notice: string) {
  const starts: (string | null | undefined)[] = [];
  const event = JSON.stringify({ topic: "orders/browser", content: "eA==", extensions: {}, eventId: "2cf24dba-1-2" });
  const server = createServer(({ method, url = "", headers }, response) => {
    response.setHeader("access-control-allow-origin", "*").setHeader("access-control-allow-headers", "*");
    if (method === "OPTIONS" || !url.startsWith("/tail")) return response.end("true");
    starts.push(headers["last-event-id"]?.toString() ?? new URLSearchParams(url.slice(url.indexOf("?"))).get("after"));
    if (starts.length === 2) return response.writeHead(503).end();
    response.setHeader("content-type", "text/event-stream");
    return response.end(`retry: 1\nid: 2cf24dba-1-2\ndata: ${event}\n\n${notice}`);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, starts, ...closing(server) };
}
