import { describe, expect, it } from "vitest";
import { sendRaw } from "../testing/raw-http.ts";
import { serve } from "../testing/serve.ts";
import { type ConsoleFile, type ConsoleFiles, toEtag } from "./console-files.ts";

const file = (type: string, text: string): ConsoleFile => {
  const bytes = Buffer.from(text);
  return { type, bytes, gzip: undefined, etag: toEtag(bytes) };
};
const html = "text/html; charset=utf-8";
const docs: ConsoleFiles = new Map([
  ["index.html", file(html, '<script src="/stele-docs-base/assets/a.1.js"></script>')],
  ["tail.html", file(html, "tail")],
  ["404.html", file(html, "no such page")],
  ["assets/a.1.js", file("text/javascript; charset=utf-8", 'const base = "/stele-docs-base/";')],
]);
const consoleFiles: ConsoleFiles = new Map([["index.html", file(html, '<head><base href="/console/"></head>')]]);
const link = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };

describe("the documentation", () => {
  it.each([
    ["", "/docs"],
    ["/one/two", "/one/two/docs"],
  ])("puts the address below the base path %j into its files", async (basePath, base) => {
    await using server = await serve({}, { docs, basePath });
    const { origin } = new URL(server.url);
    const page = await fetch(`${origin}${base}`);
    expect({ url: page.url, text: await page.text() }).toEqual({
      url: `${origin}${base}/`,
      text: `<script src="${base}/assets/a.1.js"></script>`,
    });
    const script = await fetch(`${origin}${base}/assets/a.1.js`);
    expect(await script.text()).toBe(`const base = "${base}/";`);
    expect(script.headers.get("content-encoding")).toBe("gzip");
    expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  });

  it.each(["/docs/tail", "/docs/tail.html"])("serves the page %s with scripts of its own only", async (path) => {
    await using server = await serve({}, { docs });
    const { status, headers } = await fetch(`${server.url}${path}`);
    expect({ status, type: headers.get("content-type") }).toEqual({ status: 200, type: html });
    expect(headers.get("content-security-policy")?.split("; ")).toEqual(
      expect.arrayContaining(["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]),
    );
    expect(headers.get("cache-control")).toBe("no-cache");
  });

  it.each([
    ["/docs/none", "no such page"],
    ["/docs/%2e%2e/package.json", expect.stringContaining('"code"')],
    ["/docs/assets/none.js", expect.stringContaining('"code"')],
  ])("answers 404 at %s", async (path, text) => {
    await using server = await serve({}, { docs });
    const answer = await fetch(`${server.url}${path}`);
    expect({ status: answer.status, text: await answer.text() }).toEqual({ status: 404, text });
  });

  it("is named by the index and the console if it is served", async () => {
    await using server = await serve({}, { docs, console: consoleFiles, basePath: "/one" });
    expect(await (await fetch(server.url)).json()).toMatchObject({ docs: "/one/docs/" });
    expect(await (await fetch(`${server.url}/console/`)).text()).toContain('<link rel="help" href="/one/docs/" />');
    await using without = await serve({}, { console: consoleFiles });
    expect(await (await fetch(without.url)).json()).not.toHaveProperty("docs");
    expect(await (await fetch(`${without.url}/console/`)).text()).not.toContain("help");
  });

  it.each([
    ["a link of another site", link, 200],
    ["a frame of another site", { ...link, "sec-fetch-dest": "iframe" }, 403],
    ["a fetch of another site", { ...link, "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" }, 403],
    ["a rebound name", { ...link, host: "evil.example" }, 403],
  ])("lets other sites link to a page, but not read it: %s", async (_name, headers, status) => {
    await using server = await serve({}, { docs });
    const all = Object.entries({ host: "localhost", connection: "close", ...headers });
    const head = all.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const answer = await sendRaw(server.url, [`GET /docs/tail HTTP/1.1\r\n${head}\r\n`]);
    expect(Number(answer.slice(9, 12))).toBe(status);
  });
});
