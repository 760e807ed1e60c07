import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LogInWorld } from "../hostile/support/log-in-world.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser, unlock } from "./console/console-browser.ts";
import { PageServer } from "./stomp/page-server.ts";

describe.runIf(canRunChromium)("people who log in to the console through an identity provider", () => {
  let world: LogInWorld;
  let browser: ConsoleBrowser;
  /** Origins of other sites that the browser visited. */
  const foreign: string[] = [];

  beforeAll(async () => {
    world = await LogInWorld.start();
    browser = await ConsoleBrowser.start();
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  it("people return to their view after the log-in, publish after they unlock changes, and log out in every tab", async () => {
    const page = await browser.open(`${world.consoleUrl}/tail?topic=orders%2F%23`);
    await dialogOf(page).getByLabel("Key or token").fill("stele_0000000000000000_wrong");
    await dialogOf(page).getByRole("button", { name: "Continue" }).click();
    await page.getByRole("alert").getByText("The broker refused the key").waitFor();
    await logIn(page, "clerk");
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    expect(page.url()).toBe(`${world.consoleUrl}/tail?topic=orders%2F%23`);
    expect(await page.evaluate("document.cookie")).toBe("");
    await page.getByRole("link", { name: "Overview" }).click();
    const form = page.getByRole("region", { name: "Publish" });
    await unlock(page);
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByRole("button", { name: "Open the topic and publish" }).click();
    await form.getByText(/^Committed as/).waitFor();
    const other = await page.context().newPage();
    await other.goto(`${world.consoleUrl}/`);
    await other.getByText("acme/clerk", { exact: true }).waitFor();
    await other.getByRole("link", { name: "Log out" }).click();
    await dialogOf(other).waitFor();
    await page.reload();
    await dialogOf(page).waitFor();
  });

  it("a tail shows no further event once somebody has logged out in another tab", async () => {
    const page = await browser.open(`${world.consoleUrl}/tail?topic=orders`);
    await logIn(page, "clerk");
    await page.getByText(/^Live/).waitFor();
    const other = await page.context().newPage();
    await other.goto(`${world.consoleUrl}/`);
    await logOut(other);
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await dialogOf(page).waitFor();
    await page.getByText("Ended: the broker asks for a log-in · 0 events kept").waitFor();
    await logIn(other, "clerk");
    await other.getByText("acme/clerk", { exact: true }).waitFor();
    await unlock(other);
    const form = other.getByRole("region", { name: "Publish" });
    await form.getByLabel("Topic").fill("orders");
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByRole("button", { name: "Open the topic and publish" }).click();
    await form.getByText(/^Committed as/).waitFor();
    await other.goto(`${world.consoleUrl}/tail?topic=orders&after=OFFSET_FIRST`);
    await other.getByText("Live · 1 event kept").waitFor();
    expect(await page.getByText("Ended: the broker asks for a log-in · 0 events kept").count()).toBe(1);
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await page.getByText("Live · 0 events kept").waitFor();
    await page.context().close();
  });

  it("people return to the draft of the link that they opened", async () => {
    const page = await browser.open(`${world.consoleUrl}/#topic=drafted&content=x`);
    await logIn(page, "clerk");
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    expect(await page.getByRole("region", { name: "Publish" }).getByLabel("Topic").inputValue()).toBe("drafted");
    await page.reload();
    expect(page.url()).toBe(`${world.consoleUrl}/#topic=drafted&content=x`);
    await page.context().close();
  });

  it("people return to the view that the browser's Back shows while the console asks for a log-in", async () => {
    const page = await browser.open(`${world.consoleUrl}/tail?topic=a`);
    await dialogOf(page).waitFor();
    const next = `${new URL(world.consoleUrl).pathname}/tail?topic=b`;
    await page.evaluate(`history.pushState(null, "", ${JSON.stringify(next)})`);
    await page.reload(); // The dialog is made at the second view.
    await dialogOf(page).waitFor();
    await page.goBack();
    await logIn(page, "clerk");
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    expect(page.url()).toBe(`${world.consoleUrl}/tail?topic=a`);
    await page.context().close();
  });

  it("people see only what their token allows", async () => {
    const page = await browser.open(`${world.consoleUrl}/`);
    await logIn(page, "looker");
    await page.getByText("acme/looker", { exact: true }).waitFor();
    expect(await page.getByRole("button", { name: "Unlock changes" }).count()).toBe(0);
    expect(await page.getByRole("region", { name: "Publish" }).count()).toBe(0);
    const views = page.getByRole("navigation", { name: "Views" }).getByRole("link");
    expect(await views.allTextContents()).toEqual(["Overview", "Tail"]);
  });

  it("a tab locks its changes after another person has logged in in another tab", async () => {
    const page = await browser.open(`${world.consoleUrl}/`);
    await logIn(page, "clerk");
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    await unlock(page);
    const other = await page.context().newPage();
    await other.goto(`${world.consoleUrl}/`);
    await logOut(other);
    await logIn(other, "looker");
    await other.getByText("acme/looker", { exact: true }).waitFor();
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await page.getByText("acme/looker", { exact: true }).waitFor();
    await page.getByRole("region", { name: "Publish" }).waitFor({ state: "detached" });
    await logOut(other);
    await logIn(other, "clerk");
    await other.getByText("acme/clerk", { exact: true }).waitFor();
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Unlock changes" }).waitFor();
  });

  it("a tab that asks for a log-in shows its view once somebody has logged in in another tab", async () => {
    const page = await browser.open(`${world.consoleUrl}/tail?topic=orders`);
    await dialogOf(page).waitFor();
    const other = await page.context().newPage();
    await other.goto(`${world.consoleUrl}/`);
    await logIn(other, "clerk");
    await other.getByText("acme/clerk", { exact: true }).waitFor();
    expect(await dialogOf(page).count()).toBe(1);
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await dialogOf(page).waitFor({ state: "detached" });
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    await page.getByText(/^Live/).waitFor();
  });

  it("when a token expires during a tail, the console asks for a new log-in, and then returns to the tail", async () => {
    world.provider.tokenSeconds = 12;
    const page = await browser.open(`${world.consoleUrl}/tail?topic=orders`);
    await logIn(page, "clerk");
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    await dialogOf(page).waitFor();
    world.provider.tokenSeconds = 600;
    await page.getByRole("link", { name: "Log in with acme" }).click();
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    expect(page.url()).toContain("/console/tail?topic=orders");
  });

  it("the console shows why the broker refuses the provider's token", async () => {
    world.provider.audience = "somebody else";
    const page = await browser.open(`${world.consoleUrl}/`);
    await logIn(page, "clerk");
    await page
      .getByRole("alert")
      .getByText(/does not take its access token/)
      .waitFor();
    await page.getByRole("link", { name: "Back to the console" }).click();
    await dialogOf(page).waitFor();
    world.provider.audience = "stele";
  });

  it("a log-in gives no rights to pages of other sites, nor to pages of other ports of the broker's host", async () => {
    await using pages = await PageServer.start();
    const page = await browser.open(`${world.consoleUrl}/`);
    await logIn(page, "clerk");
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    const address = pages.add(
      "/evil.html",
      `<form method="post" action="${world.broker.url}/rest/open?topic=stolen"></form>`,
    );
    for (const place of [address, address.replace("127.0.0.1", "localhost")]) {
      foreign.push(new URL(place).origin);
      await page.goto(place);
      const call = (path: string) =>
        page.evaluate(
          `fetch("${world.broker.url}${path}", { method: "POST", mode: "no-cors", credentials: "include" }).then(() => "sent", () => "refused")`,
        );
      await call("/rest/open?topic=stolen");
      await page.evaluate("document.forms[0].submit()");
      await page.getByText("100703").waitFor();
    }
    await page.goto(`${world.consoleUrl}/`);
    await page.getByText("acme/clerk", { exact: true }).waitFor();
    expect(await page.evaluate(`fetch("/rest/exist?topic=stolen").then((answer) => answer.text())`)).toBe("false");
  });

  it("the log-in pages have no serious axe violations, in light and dark", async () => {
    const log = { name: "log-in", ready: (page: Page) => dialogOf(page).waitFor() };
    expect(await browser.examine(`${world.consoleUrl}/`, log)).toEqual([]);
    const failed = { name: "log-in-failed", ready: (page: Page) => page.getByRole("alert").waitFor() };
    expect(await browser.examine(`${world.consoleUrl}/callback/acme`, failed)).toEqual([]);
  });

  it("no page violates its Content-Security-Policy, throws an error or calls another server", () => {
    const visited = [world.provider.issuer, ...foreign].map((origin) => `request: ${origin}/`);
    expect(browser.faults.filter((fault) => !visited.some((start) => fault.startsWith(start)))).toEqual([]);
  });
});

const dialogOf = (page: Page) => page.getByRole("dialog", { name: "Log in" });

async function logIn(page: Page, name: string): Promise<void> {
  await dialogOf(page).getByRole("link", { name: "Log in with acme" }).click();
  await page.getByLabel("Name").fill(name);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** Logs out of the console and of the provider, so that the next log-in asks for a name. */
async function logOut(page: Page): Promise<void> {
  await page.getByRole("link", { name: "Log out" }).click();
  await dialogOf(page).waitFor();
  await page.context().clearCookies({ name: /^_/ });
}
