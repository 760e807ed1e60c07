import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { canRunChromium, startChromium } from "../harness/chromium.ts";
import { findProgram } from "../harness/find-program.ts";
import { findFreePort } from "../harness/free-port.ts";
import { TailClient } from "../harness/tail-client.ts";
import { until } from "../harness/until.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { PageServer } from "./stomp/page-server.ts";

const manual = readFileSync(new URL("../../docs/tail.md", import.meta.url), "utf8");
const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const address = "http://127.0.0.1:8080";
const commandsOf = (text: string): readonly string[] =>
  [...text.matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(([, block = ""]) => block.trim().split("\n"));
const hasTools = ["bash", "curl"].every((tool) => findProgram(tool) !== undefined);

/** A shell line that runs until the test disposes of it. */
class Running implements Disposable {
  readonly #child: ChildProcess;
  output = "";

  constructor(command: string) {
    // In its own process group, so that curl ends with it.
    this.#child = spawn("bash", ["-c", command], { stdio: ["ignore", "pipe", "inherit"], detached: true });
    this.#child.stdout?.on("data", (chunk: Buffer) => (this.output += chunk.toString()));
  }

  [Symbol.dispose](): void {
    if (this.#child.pid !== undefined) process.kill(-this.#child.pid, "SIGKILL");
  }
}

/** A broker with the default settings. */
const running = useWorld(embeddedWorld);
const here = (command: string): string => command.replaceAll(address, running().broker.url);

describe.runIf(hasTools)("curl (needs bash and curl)", () => {
  let eventId: string;
  beforeAll(async () => {
    const { client } = running();
    await client.open("orders/new");
    ({ eventId } = await client.publish("orders/new", '{"status":"paid"}'));
  });

  it("the curl command of the README shows events", async () => {
    const [command = ""] = commandsOf(readme).filter((line) => line.includes("/tail"));
    using shell = new Running(here(command));
    await until("the event is shown", () => shell.output.includes(`\nid: ${eventId}\ndata: {"topic":"orders/new"`));
  });

  it("the curl command of docs/tail.md shows only the new events that match its filter", async () => {
    const commands = commandsOf(manual).filter((line) => !line.includes("OFFSET_FIRST") && !line.includes("jq"));
    expect(commands).toHaveLength(1);
    using shell = new Running(here(commands[0] ?? ""));
    await until("the tail has begun", () => shell.output.includes("id: @"));
    await running().client.publish("orders/new", '{"status":"open"}');
    const paid = await running().client.publish("orders/new", '{"status":"paid"}');
    await until("the event is shown", () => shell.output.includes(paid.eventId));
    expect(shell.output.match(/^data:/gm)).toHaveLength(1);
  });

  it("curl with the header accept: application/x-ndjson shows lines of JSON", async () => {
    const accept = "-H 'accept: application/x-ndjson'";
    using shell = new Running(`curl -sN ${accept} '${running().broker.url}/tail?topic=%23&after=OFFSET_FIRST'`);
    await until("the event is shown", () => shell.output.includes("\n"));
    expect(JSON.parse(shell.output.split("\n")[0] ?? "")).toMatchObject({ topic: "orders/new", eventId });
  });
});

it("a tail gets the event `end` when the broker stops, and continues after its restart", async () => {
  const world = running();
  await world.client.open("a");
  const tail = new TailClient("topic=a");
  const ended = tail.read(world.broker.url, () => true);
  await until("the tail has begun", () => tail.lastId !== undefined);
  await world.client.publish("a", "1");
  expect((await world.stop()).code).toBe(0);
  await ended;
  await world.resume();
  await world.client.publish("a", "2");
  await tail.read(world.broker.url, () => tail.events.length < 2);
  expect(tail.events.map(({ text }) => text)).toEqual(["1", "2"]);
  expect(tail.notices).toEqual(["end"]);
});

const [, documented = ""] = /```html\n([\s\S]*?)```/.exec(manual) ?? [];
const documentedFor = (url: string): string => documented.replace("http://127.0.0.1:8080", url);

/** A page that reads a tail by `fetch`, which lets a page set headers; EventSource does not. */
const fetchPage = (url: string): string => `<!doctype html><pre></pre><script type="module">
  const answer = await fetch("${url}", { headers: { accept: "application/x-ndjson", "last-event-id": "OFFSET_FIRST" } });
  const decoder = new TextDecoder();
  for await (const chunk of answer.body) document.querySelector("pre").append(decoder.decode(chunk, { stream: true }));
</script>`;

describe.runIf(canRunChromium)("pages in Chromium (need Debian's chromium-headless-shell)", () => {
  let pages: PageServer;
  let browser: Browser;
  let page: Page;
  let world: RunningWorld;
  beforeAll(async () => {
    pages = await PageServer.start();
    const env = { STELE_ALLOWED_ORIGINS: pages.origin, STELE_PORT: String(await findFreePort()) };
    world = await embeddedWorld.start({ env });
    await world.client.open("orders/new");
    browser = await startChromium();
  });
  afterEach(() => page.close());
  afterAll(async () => {
    await browser.close();
    await world[Symbol.asyncDispose]();
    await pages[Symbol.asyncDispose]();
  });

  it("the page of docs/tail.md shows events by EventSource, without a gap over a restart of the broker", async () => {
    const html = documentedFor(world.broker.url);
    page = await browser.newPage();
    const begun = page.waitForResponse((response) => response.url().includes("/tail"));
    await page.goto(pages.add("/", html));
    expect((await begun).status()).toBe(200);
    const isShown = async (text: string): Promise<boolean> =>
      (await page.locator("li").allTextContents()).includes(text);
    await world.client.publish("orders/new", "first ü");
    await until("the event is shown", () => isShown("orders/new: first ü"));
    await world.stop();
    await world.resume();
    await world.client.publish("orders/new", "second");
    await until("the next event is shown", () => isShown("orders/new: second"), { timeoutMs: 30_000 });
    expect(await page.locator("li").allTextContents()).toEqual(["orders/new: first ü", "orders/new: second"]);
  });

  it("a page reads lines of JSON by fetch, with a header that says where to start", async () => {
    const { eventId } = await world.client.publish("orders/new", "by fetch");
    page = await browser.newPage();
    await page.goto(pages.add("/fetch.html", fetchPage(`${world.broker.url}/tail?topic=%23`)));
    await until("the event is shown", async () => ((await page.textContent("pre")) ?? "").includes(eventId));
  });

  it("the broker refuses a page whose origin is not allowed", async () => {
    page = await browser.newPage();
    const reported = page.waitForEvent("console", (message) => message.text().includes("/tail"));
    await page.goto(pages.add("/closed.html", documentedFor(running().broker.url)));
    expect((await reported).text()).toContain("blocked by CORS policy");
  });
});
