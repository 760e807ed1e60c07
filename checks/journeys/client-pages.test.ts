import { fileURLToPath } from "node:url";
import type { Browser, Page } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { canRunChromium, startChromium } from "../harness/chromium.ts";
import { findFreePort } from "../harness/free-port.ts";
import { until } from "../harness/until.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { PageServer } from "./stomp/page-server.ts";

/** The built client as one module. */
async function bundleClient(): Promise<string> {
  await using build = await rolldown({
    input: fileURLToPath(new URL("../../client/dist/index.js", import.meta.url)),
    platform: "browser",
  });
  const { output } = await build.generate({ format: "esm" });
  return output[0].code;
}

/** A page that publishes an event, and shows every event of the topic. */
const page = (url: string, client: string): string => `<!doctype html><ol></ol><script type="module">
  import { Stele } from "${client}";
  const stele = new Stele({ url: "${url}" });
  await stele.open("page");
  await stele.publish("page", "first ü", { once: true });
  for await (const event of stele.subscribe("page", { after: "OFFSET_FIRST", reconnectMsMax: 20 })) {
    document.querySelector("ol").append(Object.assign(document.createElement("li"), { textContent: event.text() }));
  }
</script>`;

describe.runIf(canRunChromium)("the client in Chromium (needs Debian's chromium-headless-shell)", () => {
  let pages: PageServer;
  let browser: Browser;
  let shown: Page;
  let world: RunningWorld;
  beforeAll(async () => {
    pages = await PageServer.start();
    const env = { STELE_ALLOWED_ORIGINS: pages.origin, STELE_PORT: String(await findFreePort()) };
    world = await embeddedWorld.start({ env });
    browser = await startChromium();
    shown = await browser.newPage();
  });
  afterAll(async () => {
    await browser.close();
    await world[Symbol.asyncDispose]();
    await pages[Symbol.asyncDispose]();
  });

  it("the client publishes from a page of another origin, and shows events without a gap over a restart of the broker", async () => {
    const client = pages.add("/client.js", await bundleClient());
    await shown.goto(pages.add("/", page(world.broker.url, client)));
    const texts = (): Promise<readonly string[]> => shown.locator("li").allTextContents();
    await until("the first event is shown", async () => (await texts()).length === 1);
    await world.stop();
    await world.resume();
    for (const text of ["second", "third"]) await world.client.publish("page", text);
    await until("all three events are shown", async () => (await texts()).length >= 3, { timeoutMs: 60_000 });
    expect(await texts()).toEqual(["first ü", "second", "third"]);
  });
});
