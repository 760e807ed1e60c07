import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it, test } from "vitest";
import { sendRaw } from "../testing/raw-http.ts";
import { serve } from "../testing/serve.ts";
import { type ConsoleFiles, readConsoleFiles } from "./console-files.ts";

const page = '<!doctype html><base href="/console/"><script type="module" src="./assets/index-1a.js"></script>';
const script = "console.log(1);".repeat(100);
let folder: string;
let files: ConsoleFiles;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "console-"));
  mkdirSync(join(folder, "assets"));
  writeFileSync(join(folder, "index.html"), page);
  writeFileSync(join(folder, "assets", "index-1a.js"), script);
  writeFileSync(join(folder, "assets", "index-1a.js.gz"), gzipSync(script));
  writeFileSync(join(folder, "assets", "index-1a.js.map"), "{}");
  const found = readConsoleFiles(folder);
  if (found === undefined) throw new Error("no files");
  files = found;
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Node's `fetch` sends headers of its own, so every header is written here. */
async function ask(url: string, path: string, headers: Readonly<Record<string, string>> = {}) {
  const all = { host: "localhost", connection: "close", ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  const text = await sendRaw(url, [`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`]);
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const found = Object.fromEntries(
    head
      .split("\r\n")
      .slice(1)
      .map((line) => line.split(/: (.*)/).slice(0, 2)),
  ) as Record<string, string>; // Pairs.
  return { status: Number(head.slice(9, 12)), headers: found, body };
}

const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

describe("the console", () => {
  it.each(["/console/", "/console/tail?topic=%23", "/console/events/a-1-2", "/console/index.html"])(
    "serves its page at %s, unframed and with its own scripts only",
    async (path) => {
      await using server = await serve({}, { console: files });
      const { status, headers, body } = await ask(server.url, path);
      expect({ status, body }).toEqual({ status: 200, body: page });
      expect(headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
        "cross-origin-opener-policy": "same-origin",
      });
      const policy = headers["content-security-policy"];
      for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"])
        expect(policy?.split("; ")).toContain(rule);
    },
  );

  it("tells the page the base path", async () => {
    await using server = await serve({}, { console: files, basePath: "/one/two" });
    const { origin } = new URL(server.url);
    const { body } = await ask(origin, "/one/two/console/tail");
    expect(body).toContain('<base href="/one/two/console/">');
    expect((await ask(origin, "/console/")).status).toBe(404);
    expect((await ask(origin, "/one/two/console?a=%23")).headers["location"]).toBe("/one/two/console/?a=%23");
  });

  it("lets the page ask nodes of the chain that the operator names, and no others", async () => {
    const chainNodes = ["https://node.example/rpc", "https://node.example/other", "http://127.0.0.1:8545"];
    const index = {
      type: "text/html",
      bytes: Buffer.from('<meta name="chain-nodes" content="" />'),
      gzip: undefined,
      etag: "x",
    };
    await using server = await serve({}, { console: new Map([["index.html", index]]), consoleChainNodes: chainNodes });
    const { headers, body } = await ask(server.url, "/console/");
    expect(body).toBe(`<meta name="chain-nodes" content="${chainNodes.join(" ")}" />`);
    expect(headers["content-security-policy"]?.split("; ")).toContain(
      "connect-src 'self' https://node.example http://127.0.0.1:8545",
    );
  });

  it("lets browsers keep hashed files for ever, and revalidate the page each time", async () => {
    await using server = await serve({}, { console: files });
    const asset = await ask(server.url, "/console/assets/index-1a.js");
    expect(asset).toMatchObject({ status: 200, body: script });
    expect(asset.headers["cache-control"]).toBe("public, max-age=31536000, immutable");
    const { etag = "" } = (await ask(server.url, "/console/")).headers;
    expect(await ask(server.url, "/console/", { "if-none-match": etag })).toMatchObject({ status: 304, body: "" });
    expect(await ask(server.url, "/console/", { "if-none-match": '"other"' })).toMatchObject({ status: 200 });
  });

  it.each([
    ["weak, as a proxy that compresses makes it", (etag: string) => `W/${etag}`],
    ["one of several", (etag: string) => `"other" , ${etag}`],
    ["any", () => "*"],
  ])("sends no file whose tag the browser has: %s", async (_, toHeader) => {
    await using server = await serve({}, { console: files });
    const { etag = "" } = (await ask(server.url, "/console/")).headers;
    const answer = await ask(server.url, "/console/", { "if-none-match": toHeader(etag) });
    expect(answer).toMatchObject({ status: 304, body: "" });
  });

  it.each([
    ["gzip, deflate, br", true],
    ["gzip;q=0.5", true],
    ["gzip;q=0", false],
    ["br", false],
  ])("Accept-Encoding %j gets gzip: %j", async (accepted, isPacked) => {
    await using server = await serve({}, { console: files });
    const response = await fetch(`${server.url}/console/assets/index-1a.js`, {
      headers: { "accept-encoding": accepted },
    });
    expect(response.headers.get("content-encoding")).toBe(isPacked ? "gzip" : null);
    expect(response.headers.get("vary")).toBe("accept-encoding");
    expect(await response.text()).toBe(script);
    expect(gunzipSync(files.get("assets/index-1a.js")?.gzip ?? "").toString()).toBe(script);
  });

  it.each([
    "/console/assets/none.js",
    "/console/assets/../../package.json",
    "/console/assets/%2e%2e/%2e%2e/package.json",
    "/console/assets/index-1a.js.map",
    "/console/assets/index-1a.js.gz",
  ])("answers 404 at %s", async (path) => {
    await using server = await serve({}, { console: files });
    expect((await ask(server.url, path)).status).toBe(404);
  });

  it("is not served if it is off", async () => {
    await using server = await serve();
    expect((await ask(server.url, "/console/")).status).toBe(404);
    expect((await ask(server.url, "/", { accept: "text/html" })).headers["content-type"]).toMatch("application/json");
    expect(readConsoleFiles(join(folder, "assets"))).toBeUndefined();
  });
});

test.each([
  ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", 302],
  ["text/html", 302],
  ["*/*", 200],
  ["application/json, text/html", 200],
  ["text/htmlx", 200],
  [undefined, 200],
])("the base address with Accept %j answers %i", async (accept, status) => {
  await using server = await serve({}, { console: files, basePath: "/one" });
  const answer = await ask(new URL(server.url).origin, "/one/", accept === undefined ? {} : { accept });
  expect(answer.status).toBe(status);
  expect(answer.headers["vary"]).toBe("accept");
  if (status === 302) expect(answer.headers["location"]).toBe("/one/console/");
  else expect(JSON.parse(answer.body)).toMatchObject({ console: "/one/console/" });
});

describe("pages of other sites", () => {
  it("cannot call an operation by an address that begins like the console's", async () => {
    await using server = await serve({}, { console: files });
    const { body } = await ask(server.url, "/console/../rest/publish?topic=a&content=b", link);
    expect({ body, calls: server.calls }).toEqual({ body: page, calls: [] });
  });

  it.each(["/console", "/console/", "/console/tail?topic=a"])("may link to %s", async (path) => {
    await using server = await serve({}, { console: files });
    expect((await ask(server.url, path, link)).status).toBeLessThan(400);
  });

  it.each<[string, string, Readonly<Record<string, string>>]>([
    ["a frame", "/console/", { ...link, "sec-fetch-dest": "iframe" }],
    ["a script", "/console/assets/index-1a.js", { ...link, "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script" }],
    ["a fetch", "/console/", { ...link, "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" }],
    ["a fetch of an older browser", "/console/", { origin: "https://evil.example" }],
    ["a form", "/console/", { ...link, origin: "null" }],
    ["a rebound name", "/console/", { ...link, host: "evil.example" }],
    ["a rebound name of its own", "/console/", { "sec-fetch-site": "same-origin", host: "evil.example" }],
    ["a link to a call", "/rest/publish?topic=a&content=b", link],
    ["a link to operators' pages", "/admin/listSubscription", link],
    ["a link to the index", "/", link],
  ])("get nothing by %s", async (_name, path, headers) => {
    await using server = await serve({}, { console: files });
    expect((await ask(server.url, path, headers)).status).toBe(403);
    expect(server.calls).toEqual([]);
  });
});
