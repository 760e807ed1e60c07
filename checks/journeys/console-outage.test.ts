import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser } from "./console/console-browser.ts";

describe.runIf(canRunChromium)("the console while its broker hangs or is away, in Chromium", () => {
  let world: RunningWorld;
  let browser: ConsoleBrowser;
  beforeAll(async () => {
    world = await embeddedWorld.start({});
    browser = await ConsoleBrowser.start();
    await world.client.open("bills");
    await world.client.publish("bills", "so that the broker is not empty");
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  const view = (path: string): string => `${world.broker.url}/console/${path}`;

  it.each([
    ["", "Ready: the broker takes and delivers events."],
    ["cluster", "Ready"],
  ])("the view at /%s shows no health once the broker has not answered for 10 s", async (path, ready) => {
    const page = await browser.open(view(path));
    await page.clock.install();
    await page.reload();
    await page.getByText(ready, { exact: true }).waitFor();
    const asked = new Promise<void>((resolve) => void page.route(/health|admin/, () => resolve()));
    await page.clock.runFor(5000);
    await asked;
    await page.clock.runFor(10_000);
    await page.getByRole("alert").getByText("does not answer in time").waitFor();
    expect(await page.getByText(ready, { exact: true }).count()).toBe(0);
    await page.context().close();
  });
});
