import { readFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { canRunChromium, startChromium } from "../harness/chromium.ts";
import { type Line, Lines } from "../harness/lines.ts";
import { until } from "../harness/until.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { journey } from "./stomp/journey.ts";
import { type Driver, OrderedClient } from "./stomp/ordered-client.ts";
import { PageServer } from "./stomp/page-server.ts";

const env = { STELE_STOMP_PORT: "0" };
const script = readFileSync(new URL("stomp/stompjs.mjs", import.meta.url), "utf8");
const manual = readFileSync(new URL("../../docs/stomp.md", import.meta.url), "utf8");
const [, documented = ""] = /<!-- page:begin -->\n```html\n([\s\S]*?)```\n<!-- page:end -->/.exec(manual) ?? [];

/** A page that runs a client from the library's UMD bundle. The page's function `order` takes the test's orders. */
const pageOf = (brokerURL: string): string => `<!doctype html>
<script src="/node_modules/@stomp/stompjs/bundles/stomp.umd.js"></script>
<script type="module">
  import { createDriver } from "/stompjs.mjs";
  window.order = createDriver({ Client: StompJs.Client, config: { brokerURL: "${brokerURL}" }, say });
</script>`;

function stompUrlOf({ broker }: RunningWorld): string {
  return `${broker.url.replace(/^http/, "ws")}/stomp`;
}

describe.runIf(canRunChromium)("pages in Chromium (need Debian's chromium-headless-shell)", () => {
  let pages: PageServer;
  let browser: Browser;
  let page: Page;
  let world: RunningWorld;

  beforeAll(async () => {
    pages = await PageServer.start();
    pages.add("/stompjs.mjs", script);
    world = await embeddedWorld.start({ env: { ...env, STELE_ALLOWED_ORIGINS: pages.origin } });
    browser = await startChromium();
  });
  afterEach(() => page.close());
  afterAll(async () => {
    await browser.close();
    await world[Symbol.asyncDispose]();
    await pages[Symbol.asyncDispose]();
  });

  /** Opens a page with a driver. The driver connects when the test gives the order `connect`. */
  async function openDriver(brokerUrl: string): Promise<Driver> {
    const lines = new Lines();
    const fail = (error: unknown): void => lines.push({ what: "error", error: String(error) });
    page = await browser.newPage();
    page.on("pageerror", fail);
    await page.exposeFunction("say", (line: Line) => lines.push(line));
    await page.goto(pages.add("/driver.html", pageOf(brokerUrl)));
    const run = (order: string, fields: object): Promise<unknown> =>
      page.evaluate(`order(${JSON.stringify(order)}, ${JSON.stringify(fields)})`).catch(fail);
    return { lines, do: (order, fields = {}) => void run(order, fields) };
  }

  it("a page publishes, receives, commits a transaction and resumes its durable subscription", async () => {
    const client = new OrderedClient(await openDriver(stompUrlOf(world)));
    await journey(client, { rest: world.client, version: "1.2", name: "chromium" });
  });

  it("the broker refuses a page whose origin is not allowed", async () => {
    await using closed = await embeddedWorld.start({ env });
    const driver = await openDriver(stompUrlOf(closed));
    const reason = new Promise<string>((resolve) => {
      page.on("websocket", (socket) => socket.on("socketerror", resolve));
    });
    driver.do("connect");
    const outcome = driver.lines.next("connected").then(
      () => "connected",
      () => reason,
    );
    expect(await outcome).toMatch(/response code: 403/);
  });

  it("the page of docs/stomp.md publishes an event and shows it", async () => {
    expect(documented).toContain("ws://127.0.0.1:8080/stomp");
    page = await browser.newPage();
    await page.goto(pages.add("/", documented.replace("ws://127.0.0.1:8080/stomp", stompUrlOf(world))));
    await until("the page has subscribed", async () => {
      const entries = Object.values(await world.client.listSubscriptions()).flatMap((node) => Object.values(node));
      return entries.some(({ topicName }) => topicName === "plant/#");
    });
    await page.click("button");
    const shown = await page.textContent("li");
    const [, eventId = ""] = /^plant\/boiler (\S+): 21 degrees$/.exec(shown ?? "") ?? [];
    expect((await world.client.getEvent(eventId)).topic).toBe("plant/boiler");
  });
});
