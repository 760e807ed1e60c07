import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { changeAccess } from "../harness/broker-command.ts";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { createTempFolder, type TempFolder } from "../harness/temp-folder.ts";
import { useReceivers } from "../harness/use.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser, unlock } from "./console/console-browser.ts";
import { PageServer } from "./stomp/page-server.ts";

const roles = {
  clerk: [{ actions: ["open", "publish", "subscribe", "read"], filter: "#" }],
  auditor: [
    { actions: ["read"], filter: "#" },
    { actions: ["subscribe"], filter: "orders/#" },
  ],
  reader: [{ actions: ["read", "subscribe"], filter: "orders/#" }],
  operator: [{ actions: ["admin"] }],
  member: [{ actions: ["open", "subscribe"] }],
};

describe.runIf(canRunChromium)("the console of a broker with access on, an operators' port and a base path", () => {
  let folder: TempFolder;
  let broker: BrokerProcess;
  let browser: ConsoleBrowser;
  const newReceiver = useReceivers();
  let clerk: string;
  let auditor: string;
  let reader: string;
  let operator: string;
  /** Key of a client of the tenant `acme`. */
  let member: string;
  /** Address of the page on another site that the browser visits. */
  let foreign: string;

  beforeAll(async () => {
    folder = createTempFolder();
    const config = join(folder.path, "stele.json");
    writeFileSync(
      config,
      JSON.stringify({
        access: { roles },
        basePath: "/one/two",
        adminPort: 0,
        extensionPrefix: "acme-",
        callbackConsent: "off",
      }),
    );
    const dataDir = join(folder.path, "data");
    const create = async (role: string, ...more: readonly string[]): Promise<string> => {
      const flags = ["--config", config, "--data-dir", dataDir, "--principal", role, "--role", role, ...more];
      return changeAccess("key", ["create", ...flags]);
    };
    [clerk, auditor, operator] = [await create("clerk"), await create("auditor"), await create("operator")];
    reader = await create("reader");
    member = await create("member", "--tenant", "acme");
    broker = await startBroker({ dataDir, args: ["--config", config] });
    browser = await ConsoleBrowser.start();
  });
  afterAll(async () => {
    await browser[Symbol.asyncDispose]();
    await broker[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });

  const operatorsUrl = (): string => /^ {2}Operators +(\S+)$/m.exec(broker.stderr())?.[1] ?? "";

  it("the console asks for a key if the broker requires one, rejects a wrong key, and keeps the right key only in its tab", async () => {
    const page = await browser.open(`${broker.url}/`);
    expect(page.url()).toBe(`${broker.url}/console/`);
    await giveKey(page, "stele_0000000000000000_wrong");
    await page.getByRole("alert").getByText("The broker refused the key").waitFor();
    await giveKey(page, clerk);
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByText("clerk", { exact: true }).waitFor();
    const views = page.getByRole("navigation", { name: "Views" }).getByRole("link");
    expect(await views.allTextContents()).toEqual(["Overview", "Tail"]);
    const form = page.getByRole("region", { name: "Publish" });
    await unlock(page);
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByRole("button", { name: "Open the topic and publish" }).click();
    await form.getByText(/^Committed as/).waitFor();
    await form.getByLabel("Template").selectOption("A measurement");
    await form.getByRole("button", { name: "Publish" }).click();
    await form.getByRole("button", { name: "Open the topic and publish" }).click();
    await form.getByRole("link", { name: /-1-\d+$/ }).click();
    await page.getByRole("region", { name: "Extensions" }).getByText("acme-formatjson").waitFor();
    await page.goBack();
    await page.reload();
    await page.getByText("Ready: the broker takes and delivers events.").waitFor();
    expect(await page.evaluate("[document.cookie, JSON.stringify(localStorage), location.href].join()")).not.toContain(
      clerk,
    );
    expect(await page.getByRole("region", { name: "Publish" }).locator("pre").textContent()).not.toContain(clerk);
    const other = await browser.open(`${broker.url}/console/tail`);
    await other.getByRole("dialog", { name: "This broker asks for a key" }).waitFor();
    await other.getByText("Ended: the broker asks for a key · 0 events kept").waitFor();
    await page.getByRole("button", { name: "Forget the key" }).click();
    await page.getByRole("dialog", { name: "This broker asks for a key" }).waitFor();
  });

  it("while the broker refuses its key, the console asks only for its rights, once a minute, even if somebody returns to the page", async () => {
    const page = await browser.open(`${operatorsUrl()}/console/chain`);
    await page.clock.install();
    await page.reload();
    await page.getByRole("dialog", { name: "This broker asks for a key" }).waitFor();
    const asked = new Set<string>();
    page.on("request", (request) => asked.add(request.url()));
    const rights = page.waitForRequest(/\/access$/);
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await page.clock.runFor(61_000);
    await rights;
    expect([...asked]).toEqual([`${operatorsUrl()}/access`]);
    await page.context().close();
  });

  /** A view that the key of the clerk may not see, on a page whose clock the test moves. */
  async function openRefusedView() {
    const page = await browser.open(`${operatorsUrl()}/console/subscriptions`);
    await giveKey(page, clerk);
    const refused = page.getByRole("alert").getByText("not allowed: administer (100702)");
    await refused.waitFor();
    await page.clock.install();
    await page.reload();
    await refused.waitFor();
    return { page, refused };
  }

  it("a view that the key may not see asks again only if somebody comes back, since the broker logs each refusal", async () => {
    const { page } = await openRefusedView();
    let asked = 0;
    page.on("request", (request) => (asked += request.url().includes("/admin/") ? 1 : 0));
    const rights = page.waitForRequest(/\/access$/);
    await page.clock.runFor(61_000);
    await rights;
    expect(asked).toBe(0);
    const again = page.waitForRequest(/\/admin\//);
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await again;
    await page.context().close();
  });

  it("a view that the key may not see appears once an operator has granted the right, even if nobody leaves the tab", async () => {
    const { page, refused } = await openRefusedView();
    // Stands for the grant: the broker answers as it does to an operator, but under the same name.
    const headers = { authorization: `Bearer ${operator}` };
    await page.route(/\/admin\//, (route) => route.continue({ headers }));
    await page.route(/\/access$/, async (route) => {
      const response = await route.fetch({ headers });
      await route.fulfill({ response, json: { ...((await response.json()) as object), principal: "clerk" } });
    });
    await page.clock.runFor(61_000);
    await refused.waitFor({ state: "detached" });
    await page
      .getByText(/subscriptions?$|No subscription/)
      .first()
      .waitFor();
    await page.context().close();
  });

  it.each([
    ["overview", "Ready: the broker takes and delivers events."],
    ["cluster view", "Ready"],
  ])("while the broker refuses the key, the %s shows no health", async (view, ready) => {
    const isCluster = view === "cluster view";
    const page = await browser.open(isCluster ? `${operatorsUrl()}/console/cluster` : `${broker.url}/console/`);
    await giveKey(page, isCluster ? operator : clerk);
    await page.getByText(isCluster ? "operator" : "clerk", { exact: true }).waitFor();
    await page.getByText(ready, { exact: true }).waitFor();
    const json = { code: 100_701, message: "the key was revoked" };
    await page.route(/\/access$/, (route) => route.fulfill({ status: 401, json }));
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await page.getByRole("dialog", { name: "This broker asks for a key" }).waitFor();
    expect(await page.getByText(ready, { exact: true }).count()).toBe(0);
    await page.context().close();
  });

  it("the console keeps a key until the page ends if the browser forbids sites to store anything", async () => {
    const page = await browser.open(`${broker.url}/console/`);
    await page.addInitScript(`
      const get = () => { throw new DOMException("denied", "SecurityError"); };
      Object.defineProperty(window, "sessionStorage", { get });
    `);
    await page.reload();
    await giveKey(page, clerk);
    await page.getByText("clerk", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Tail", exact: true }).click();
    await page.getByText(/^Live/).waitFor();
    await page.reload();
    await page.getByRole("dialog", { name: "This broker asks for a key" }).waitFor();
    await page.context().close();
  });

  it("after a key that no request can carry, the console still asks for a key", async () => {
    const page = await browser.open(`${broker.url}/console/`);
    await giveKey(page, "ключ");
    await page.getByRole("dialog").locator("input:invalid").waitFor();
    await giveKey(page, ` ${clerk}\t`);
    await page.getByText("clerk", { exact: true }).waitFor();
    await page.evaluate(`for (const name of Object.keys(sessionStorage)) sessionStorage.setItem(name, "ключ")`);
    await page.reload();
    await giveKey(page, clerk);
    await page.getByText("clerk", { exact: true }).waitFor();
    await page.context().close();
  });

  it("the console still asks for a key after somebody pressed Escape three times", async () => {
    const page = await browser.open(`${broker.url}/console/`);
    const dialog = page.getByRole("dialog", { name: "This broker asks for a key" });
    await dialog.waitFor();
    for (const key of ["Escape", "Escape", "Escape"]) await page.keyboard.press(key);
    await giveKey(page, clerk);
    await dialog.waitFor({ state: "detached" });
    await page.getByText("clerk", { exact: true }).waitFor();
    await page.context().close();
  });

  it("the console reports that the key may not tail events, instead of saying that none came", async () => {
    const page = await browser.open(`${broker.url}/console/`);
    await giveKey(page, auditor);
    await page.getByRole("alert").getByText('not allowed: subscribe "#"').waitFor();
    expect(await page.getByText("None since this page was opened.").count()).toBe(0);
    await page.context().close();
  });

  it("the overview tails nothing for a key that may not list the topics", async () => {
    const page = await browser.open(`${broker.url}/console/`);
    await page.getByRole("dialog").waitFor();
    const listed = page.waitForResponse((response) => response.request().postData()?.includes('"list"') === true);
    await giveKey(page, reader);
    await listed;
    await page.waitForResponse(/\/health\/ready$/);
    await page.getByText("reader", { exact: true }).waitFor();
    expect(await page.getByRole("region", { name: "Newest events" }).count()).toBe(0);
    await page.context().close();
  });

  it("the console shows operators' views only at the operators' port", async () => {
    const page = await browser.open(`${broker.url}/console/subscriptions`);
    await page
      .getByRole("alert")
      .getByText(/operators' pages may be served at another port/)
      .waitFor();
    const there = await browser.open(`${operatorsUrl()}/console/subscriptions`);
    await giveKey(there, operator);
    await there.getByText("No subscription matches.").waitFor();
    const views = there.getByRole("navigation", { name: "Views" }).getByRole("link");
    expect(await views.allTextContents()).toEqual(["Overview", "Subscriptions", "Chain", "Figures", "Cluster"]);
    await there.goto(`${operatorsUrl()}/console/`);
    await there.getByText("Ready: the broker takes and delivers events.").waitFor();
    await there.getByText("operator", { exact: true }).waitFor();
    for (const name of ["Publish", "Newest events"]) expect(await there.getByRole("region", { name }).count()).toBe(0);
    expect(await there.getByRole("alert").count()).toBe(0);
  });

  it("the chain view leads to an event and its proof at the operators' port, which serves no calls of clients", async () => {
    const query = new URLSearchParams({ topic: "in-a-block", content: "seen" });
    const headers = { authorization: `Bearer ${clerk}` };
    for (const name of ["open", "publish"]) await fetch(`${broker.url}/rest/${name}?${query}`, { headers });
    const page = await browser.open(`${operatorsUrl()}/console/chain`);
    await page.getByRole("dialog", { name: "This broker asks for a key" }).waitFor();
    let asked = 0;
    page.on("request", (request) => void (asked += Number(request.url().endsWith("/access"))));
    await giveKey(page, operator);
    await page.getByText(/^in-a-block: event 1/).click();
    await page.getByRole("link", { name: /seen/ }).click();
    await page.getByRole("tabpanel").getByText("seen", { exact: true }).waitFor();
    await page.getByText("operator", { exact: true }).waitFor();
    expect(await page.getByRole("link", { name: "in-a-block" }).count()).toBe(0);
    expect(asked).toBe(1); // With the key, and not again for each view.
    await page.getByRole("link", { name: "Prove it" }).click();
    await page.getByRole("button", { name: "Verify" }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await page.context().close();
  });

  it("if the key gives no operators' rights, the view of an event makes no operators' call, since the broker logs each refusal", async () => {
    const page = await browser.open(`${broker.url}/console/tail?topic=inspected&after=OFFSET_FIRST`);
    let asked = 0;
    page.on("request", (request) => void (asked += Number(request.url().includes("/admin/"))));
    await giveKey(page, clerk);
    await page.getByText("clerk", { exact: true }).waitFor();
    const headers = { authorization: `Bearer ${clerk}` };
    for (const name of ["open", "publish"])
      await fetch(`${broker.url}/rest/${name}?topic=inspected&content=seen`, { headers });
    await page.getByRole("link", { name: "seen" }).click();
    await page.getByRole("tabpanel").getByText("seen", { exact: true }).waitFor();
    await page.getByRole("link", { name: "Prove it" }).click();
    await page.getByRole("button", { name: "Verify" }).waitFor();
    expect(asked).toBe(0);
    await page.context().close();
  });

  it("an operator opens and pauses a tenant's subscription with a slash in its identifier", async () => {
    const receiver = await newReceiver();
    const call = async (name: string): Promise<unknown> => {
      const query = new URLSearchParams({ topic: "orders", url: receiver.url });
      const headers = { authorization: `Bearer ${member}` };
      return (await fetch(`${broker.url}/rest/${name}?${query}`, { headers })).json();
    };
    expect(await call("open")).toBe(true);
    const id = String(await call("subscribe"));
    const page = await browser.open(`${operatorsUrl()}/console/subscriptions?prefix=acme/`);
    await giveKey(page, operator);
    await page.getByRole("link", { name: "acme/orders" }).click();
    await page.getByRole("heading", { name: "acme/orders" }).waitFor();
    await page.reload();
    await page.getByRole("region", { name: "State" }).getByText(`acme/${id}`, { exact: true }).waitFor();
    await unlock(page);
    await page.getByRole("button", { name: "Pause acme/orders" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
    await page.getByRole("region", { name: "State" }).getByText("paused", { exact: true }).waitFor();
    await page.context().close();
  });

  it("an open dialog gives no order once another key has locked the tab", async () => {
    const receiver = await newReceiver();
    const headers = { authorization: `Bearer ${member}` };
    for (const name of ["open", "subscribe"]) {
      await fetch(`${broker.url}/rest/${name}?${new URLSearchParams({ topic: "held", url: receiver.url })}`, {
        headers,
      });
    }
    const page = await browser.open(`${operatorsUrl()}/console/subscriptions?prefix=acme/held`);
    await giveKey(page, operator);
    await unlock(page);
    await page.getByRole("button", { name: "Pause acme/held" }).click();
    const order = page.getByRole("dialog", { name: "Pause: acme/held" });
    await order.getByText(/^0 events wait/).waitFor();
    const json = { code: 100_701, message: "the key was revoked" };
    await page.route(/\/access$/, (route) => route.fulfill({ status: 401, json }), { times: 1 });
    await page.evaluate("window.dispatchEvent(new Event('visibilitychange'))");
    await giveKey(page, operator);
    await page.getByRole("dialog", { name: "This broker asks for a key" }).waitFor({ state: "detached" });
    await order.getByText("Read-only: unlock changes first").waitFor();
    await order.getByText(/^0 events wait/).waitFor();
    expect(await order.getByRole("button", { name: "Pause" }).isDisabled()).toBe(true);
    await page.context().close();
  });

  it("a page of another site can link to the console, but neither frame nor read it", async () => {
    await using pages = await PageServer.start();
    const console = `${broker.url}/console/tail?topic=a`;
    const address = pages.add(
      "/evil.html",
      `<a href="${console}">link</a><iframe src="${console}"></iframe><script src="${console}"></script>`,
    );
    foreign = address;
    const page = await browser.open(console);
    await page.goto(address);
    expect(await page.evaluate(`fetch("${broker.url}/console/").then(() => "read", () => "refused")`)).toBe("refused");
    await page.frameLocator("iframe").getByText("100703").waitFor();
    await page.getByRole("link", { name: "link" }).click();
    await page.getByRole("heading", { name: "Tail" }).waitFor();
    expect(page.url()).toBe(console);
  });

  it("the console violates no rule of its Content-Security-Policy, throws no error and calls no other server", () => {
    expect(browser.faults.filter((fault) => fault !== `request: ${foreign}`)).toEqual([]);
  });
});

async function giveKey(page: Page, key: string): Promise<void> {
  const dialog = page.getByRole("dialog", { name: "This broker asks for a key" });
  await dialog.getByLabel("Key or token").fill(key);
  await dialog.getByRole("button", { name: "Continue" }).click();
}
