import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { untilHolds } from "../harness/until.ts";
import { useReceivers } from "../harness/use.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser, unlock } from "./console/console-browser.ts";

describe.runIf(canRunChromium)(
  "the console without a mouse, in a narrow window (needs Debian's chromium-headless-shell)",
  () => {
    let world: RunningWorld;
    let browser: ConsoleBrowser;
    const newReceiver = useReceivers();
    beforeAll(async () => {
      world = await embeddedWorld.start({ env: { STELE_CALLBACK_CONSENT: "off" } });
      browser = await ConsoleBrowser.start();
      await world.client.open("known");
    });
    afterAll(async () => {
      await browser[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    });

    const open = async (path: string): Promise<Page> => {
      const page = await browser.open("about:blank");
      await page.setViewportSize({ width: 390, height: 780 });
      await page.goto(`${world.broker.url}/console/${path}`);
      return page;
    };

    it("the console returns the focus to the button of an order when Escape closes its dialog", async () => {
      const receiver = await newReceiver();
      await world.client.subscribe({ topic: "known", url: receiver.url });
      const page = await open("subscriptions");
      await unlock(page);
      await page.getByRole("button", { name: "Pause known" }).press("Enter");
      await page.getByRole("dialog").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      expect(await isFocused(page, "Pause known")).toBe(true);
      await page.context().close();
    });

    it("the console moves the focus to the outcome of an order whose button is gone", async () => {
      const receiver = await newReceiver();
      await world.client.open("gone");
      await world.client.subscribe({ topic: "gone", url: receiver.url });
      const page = await open("subscriptions?prefix=gone");
      await unlock(page);
      for (const [name, outcome] of [
        ["Pause", "Pause: done for 1 subscription."],
        ["Resume", "Resume: done for 1 subscription."],
      ] as const) {
        await page.getByRole("button", { name: `${name} gone` }).press("Enter");
        await page
          .getByRole("dialog")
          .getByText(/^0 events wait/)
          .waitFor();
        await page.getByRole("dialog").getByRole("button", { name }).press("Enter");
        await page.getByRole("dialog").waitFor({ state: "detached" });
        await untilHolds(async () => expect(await page.locator(":focus").textContent()).toBe(outcome));
      }
      await page.context().close();
    });

    it("the console moves the focus to the list of events when the user closes the details of an event", async () => {
      await world.client.open("read");
      await world.client.publish("read", "a line");
      const page = await open("tail?topic=read&after=OFFSET_FIRST");
      await page.getByRole("link", { name: "a line" }).press("Enter");
      await page.getByRole("button", { name: "Close" }).press("Enter");
      await page.getByRole("complementary").waitFor({ state: "detached" });
      expect(await page.locator(":focus").getAttribute("aria-label")).toBe("Events");
      await page.context().close();
    });

    it("the console has a screen reader say the state of a tail once, not again with each event", async () => {
      await world.client.open("said");
      const page = await open("tail?topic=said");
      const status = page.getByRole("main").getByRole("status");
      await status.getByText("Live", { exact: true }).waitFor();
      await world.client.publish("said", "a line");
      await page.getByText("Live · 1 event kept").waitFor();
      expect(await status.textContent()).toBe("Live");
      await page.context().close();
    });

    it("the console leaves the focus at the top of a page that was loaded, so that Tab reaches its navigation", async () => {
      const page = await open("cluster");
      await untilHolds(async () => expect(await page.title()).toBe("Cluster · Stele"));
      await page.keyboard.press("Tab");
      expect(await page.locator(":focus").textContent()).toBe("Stele");
      await page.context().close();
    });

    it("the header of the console, even with its three rows, covers no element that Shift+Tab reaches", async () => {
      await world.client.publish("known", "so that the broker is not empty");
      const page = await open("");
      await page.evaluate("sessionStorage.setItem('stele-key:/console', 'key')");
      await page.reload();
      await page.getByRole("button", { name: "Forget the key" }).waitFor();
      await page.getByRole("link", { name: "Open the tail" }).waitFor();
      await page.getByRole("button", { name: "Copy as curl" }).focus();
      const header = (await page.getByRole("banner").boundingBox())?.height ?? 0;
      const focused = page.locator("main :focus");
      const tops: number[] = [];
      for (; (await focused.count()) > 0; await page.keyboard.press("Shift+Tab")) {
        tops.push((await focused.boundingBox())?.y ?? 0);
      }
      expect(tops.length).toBeGreaterThan(5);
      expect(header).toBeGreaterThan(100);
      expect(Math.min(...tops)).toBeGreaterThanOrEqual(header);
      await page.setViewportSize({ width: 390, height: 400 });
      const link = page.getByRole("link", { name: "Open the tail" });
      const topOf = async (): Promise<number> => (await link.boundingBox())?.y ?? 0;
      await page.evaluate(`scrollBy(0, ${(await topOf()) - header + 10})`);
      expect(await topOf()).toBeLessThan(header);
      await link.focus();
      expect(await topOf()).toBeGreaterThanOrEqual(header);
      await page.context().close();
    });

    it("the console scrolls neither the page for an element of its header, nor a tail for a row in sight", async () => {
      await world.client.open("still");
      await Promise.all(Array.from({ length: 60 }, () => world.client.publish("still", "a line")));
      const page = await open("");
      await page.setViewportSize({ width: 390, height: 400 });
      await page.getByText("Ready: the broker takes and delivers events.").waitFor();
      await page.getByRole("link", { name: "Open the tail" }).waitFor(); // Otherwise its card moves the page later.
      await page.evaluate("scrollTo(0, 300)");
      for (const element of await page.getByRole("banner").locator("a, button").all()) {
        await element.focus();
        expect(await page.evaluate("scrollY")).toBe(300);
      }
      await page.setViewportSize({ width: 390, height: 780 });
      await page.goto(`${world.broker.url}/console/tail?topic=still&after=OFFSET_FIRST`);
      await page.getByText("Live · 60 events kept").waitFor();
      await untilHolds(async () => expect(await focusTopRow(page)).toBe(true));
      expect(await page.getByRole("button", { name: "Newest events" }).count()).toBe(0);
      await page.context().close();
    });

    it("the console opens a view at its top, and Back returns to the place where the user was", async () => {
      const page = await open("cluster");
      await page.setViewportSize({ width: 390, height: 400 });
      const scrolled = (): Promise<unknown> => page.evaluate("scrollY");
      const visit = async (name: string, text: string): Promise<void> => {
        await page.getByRole("link", { name, exact: true }).press("Enter");
        await page.getByText(text, { exact: true }).waitFor();
      };
      await page.getByText("Ready", { exact: true }).waitFor();
      for (const [name, text] of [
        ["Overview", "Ready: the broker takes and delivers events."],
        ["Cluster", "Ready"],
      ] as const) {
        await page.evaluate("scrollTo(0, 300)");
        expect(await scrolled()).toBe(300);
        await visit(name, text);
        expect(await scrolled()).toBe(0);
      }
      await page.goBack();
      await untilHolds(async () => expect(await scrolled()).toBe(300));
      await page.context().close();
    });

    it("the console moves the focus to the heading of a view whose link or palette is gone", async () => {
      await world.client.open("linked");
      const { eventId } = await world.client.publish("linked", "a line");
      const page = await open(`events/${eventId}`);
      await page.getByRole("link", { name: "Prove it" }).press("Enter");
      await untilHolds(async () => expect(await page.locator(":focus").textContent()).toBe(`Proof of ${eventId}`));
      await page.keyboard.press("Control+k");
      await page.getByRole("combobox").fill("cluster");
      await page.keyboard.press("Enter");
      await untilHolds(async () => expect(await page.locator(":focus").textContent()).toBe("Cluster"));
      await page.context().close();
    });

    it("the palette shows its field and the destination that an arrow key selects, even in a small window", async () => {
      const page = await open("cluster");
      await page.setViewportSize({ width: 320, height: 256 }); // 1280 px at 400 %.
      await page.getByRole("heading", { name: "Cluster" }).waitFor(); // Before it is there, nothing handles the key.
      await page.keyboard.press("Control+k");
      const field = page.getByRole("combobox");
      await field.press("ArrowUp");
      const dialog = await extentOf(page.getByRole("dialog"));
      for (const part of [field, page.getByRole("option", { name: "Cluster", selected: true })]) {
        const { top, bottom } = await extentOf(part);
        expect(top).toBeGreaterThanOrEqual(dialog.top);
        expect(bottom).toBeLessThanOrEqual(dialog.bottom);
      }
      await page.context().close();
    });

    it("the list of subscriptions shows all words of a failing subscription, also in a narrow window", async () => {
      const receiver = await newReceiver();
      await receiver.refuse();
      await world.client.open("down");
      await world.client.subscribe({ topic: "down", url: receiver.url });
      await world.client.publish("down", "a line");
      const page = await open("subscriptions?prefix=down");
      const region = page.getByRole("region", { name: "Subscriptions found" });
      await page.getByText(/^failing since/).waitFor();
      for (const width of [320, 801]) {
        await page.setViewportSize({ width, height: 780 });
        expect(await region.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
      }
      await page.context().close();
    });

    it.each([
      ["chain?group=1&below=99", "Newest", "Chain"],
      ["tail?after=OFFSET_FIRST&event=EVENT", "linked", "Tail"],
    ])(
      "the console moves the focus to the heading of a view whose link is gone although the path stays: %s",
      async (path, link, heading) => {
        await world.client.open("linked");
        const { eventId } = await world.client.publish("linked", "a line");
        const page = await open(path.replace("EVENT", eventId));
        await page.getByRole("link", { name: link, exact: true }).press("Enter");
        await untilHolds(async () => expect(await page.locator(":focus").textContent()).toBe(heading));
        await page.context().close();
      },
    );

    it("the console moves the focus to the list of events when somebody returns to the newest ones", async () => {
      await world.client.open("read");
      await Promise.all(Array.from({ length: 60 }, () => world.client.publish("read", "a line")));
      const page = await open("tail?topic=read&after=OFFSET_FIRST");
      await page.getByText(/^Live · 6\d events kept/).waitFor();
      const list = page.getByRole("group", { name: "Events" });
      await list.press("Home");
      await untilHolds(async () => expect(await list.evaluate(({ scrollTop }) => scrollTop)).toBe(0)); // The browser scrolls in steps.
      await page.getByRole("button", { name: "Newest events" }).press("Enter");
      await page.getByRole("button", { name: "Newest events" }).waitFor({ state: "detached" });
      expect(await page.locator(":focus").getAttribute("aria-label")).toBe("Events");
      await page.context().close();
    });

    it.each([
      ["tail", "Topic or pattern", "Tail"],
      ["subscriptions", "Topic begins with", "Search"],
      ["subscriptions?list=sessions", "Owner", "Search"],
    ])(
      "the console moves the focus to the button of a form when somebody presses Enter in a field: %s",
      async (...[path, field, button]) => {
        const page = await open(path);
        await page.getByLabel(field).fill("a");
        await page.getByLabel(field).press("Enter");
        await page.waitForURL(/=a(&|$)/);
        expect(await isFocused(page, button)).toBe(true);
        await page.goBack();
        await untilHolds(async () => expect(await page.getByLabel(field).inputValue()).not.toBe("a"));
        await page.context().close();
      },
    );

    it("the console keeps the focus on the button that publishes", async () => {
      await world.client.publish("known", "so that the broker is not empty");
      const page = await open("");
      await unlock(page);
      await page.getByLabel("Topic", { exact: true }).fill("unknown");
      await page.getByRole("button", { name: "Publish", exact: true }).press("Enter");
      await page.getByRole("button", { name: "Open the topic and publish" }).waitFor();
      expect(await isFocused(page, "Open the topic and publish")).toBe(true);
      await page.keyboard.press("Enter");
      await page.getByText(/^Committed as/).waitFor();
      expect(await isFocused(page, "Publish")).toBe(true);
      await page.context().close();
    });

    it.each([
      ["is a page over plain HTTP", "Object.defineProperty(navigator, 'clipboard', { value: undefined })"],
      [
        "may not write the clipboard",
        "Clipboard.prototype.writeText = () => Promise.reject(new DOMException('denied', 'NotAllowedError'))",
      ],
    ])("the console copies a command if it %s, and keeps the focus on the button", async (_, script) => {
      const page = await open("");
      await page.addInitScript(script);
      await page.reload();
      const button = page.getByRole("button", { name: "Copy as curl" });
      await button.press("Enter");
      await page.getByRole("button", { name: "Copied" }).waitFor();
      await button.waitFor();
      expect(await isFocused(page, "Copy as curl")).toBe(true);
      const content = page.getByRole("textbox", { name: "Content" });
      await content.fill("");
      await content.press("Control+v");
      expect(await content.inputValue()).toMatch(/^curl /);
      await page.context().close();
    });

    it("the console breaks the long key of an extension, so that it does not cover the value", async () => {
      const key = `svc-${"k".repeat(60)}`;
      await world.client.open("extended");
      const { eventId } = await world.client.publish("extended", "x", { [key]: "the value" });
      const page = await open(`events/${eventId}`);
      const extensions = page.getByRole("region", { name: "Extensions" });
      const value = await extensions.getByText("the value").boundingBox();
      const width = await extensions.getByText(key).evaluate(({ scrollWidth }) => scrollWidth);
      expect(width).toBeLessThan(value?.x ?? 0);
      await page.context().close();
    });

    it("the console breaks a long topic in the title of a dialog, so that nobody has to scroll to read the text", async () => {
      const topic = `contracts/0x${"1c".repeat(20)}`;
      const receiver = await newReceiver();
      await world.client.open(topic);
      await world.client.subscribe({ topic, url: receiver.url });
      const page = await open("subscriptions?prefix=contracts");
      await unlock(page);
      await page.getByRole("button", { name: `Pause ${topic}` }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(/^0 events wait/).waitFor();
      expect(await dialog.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
      await page.context().close();
    });

    it("the console shows the whole name of the current view in its header", async () => {
      const page = await open("cluster");
      await page.getByRole("heading", { name: "Cluster" }).waitFor();
      const { x = 0, width = 390 } =
        (await page.getByRole("link", { name: "Cluster", exact: true }).boundingBox()) ?? {};
      expect(x + width).toBeLessThanOrEqual(390);
      await page.context().close();
    });
  },
);

interface Extent {
  readonly top: number;
  readonly bottom: number;
}

/** Where the element is in the window, in pixels from its top. */
function extentOf(element: Locator): Promise<Extent> {
  return element.evaluate((found): Extent => found.getBoundingClientRect());
}

function isFocused(page: Page, name: string): Promise<boolean> {
  return page.getByRole("button", { name }).evaluate((button) => button === button.ownerDocument.activeElement);
}

/** Moves the focus to the first row in sight of a tail. Returns whether there is one, and the rows stayed in place. */
function focusTopRow(page: Page): Promise<unknown> {
  return page.evaluate(`{
    const list = document.querySelector("[aria-label=Events]");
    const yOf = (element) => element.getBoundingClientRect().y;
    const before = list.scrollTop;
    const [row] = [...list.querySelectorAll("a")].filter((a) => yOf(a) >= yOf(list)).toSorted((a, b) => yOf(a) - yOf(b));
    row?.focus();
    row !== undefined && before > 0 && list.scrollTop === before;
  }`);
}
