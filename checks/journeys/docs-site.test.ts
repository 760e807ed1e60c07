import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { canRunChromium } from "../harness/chromium.ts";
import { ConsoleBrowser } from "./console/console-browser.ts";

const built = fileURLToPath(new URL("../../broker/dist/docs", import.meta.url));
const sources = fileURLToPath(new URL("../../docs", import.meta.url));
const canRun = process.env["CHECKS_DOCS"] === "required" || existsSync(join(built, "index.html"));
/** Placeholder for the base path of the site in the built files; `site/base-place.mjs` has the same. */
const basePlace = "/stele-docs-base/";

interface BuiltPage {
  readonly title: string;
  readonly ids: ReadonlySet<string>;
  /** Target of each link within the site: file and fragment. */
  readonly links: readonly (readonly [string, string])[];
}

function readPage(name: string): BuiltPage {
  const html = readFileSync(join(built, name), "utf8");
  const targets = [...html.matchAll(/<a [^>]*?href="([^"]*)"/g)].map(([, target = ""]) =>
    target.replaceAll("&amp;", "&"),
  );
  const own = targets.filter((target) => !/^[a-z]+:/.test(target));
  return {
    title: /<title>(.*?)<\/title>/.exec(html)?.[1] ?? "",
    ids: new Set([...html.matchAll(/ id="([^"]*)"/g)].map(([, id = ""]) => id)),
    links: own.map((target) => {
      const [path = "", fragment = ""] = target.split("#");
      return [toFile(path, name), decodeURIComponent(fragment)];
    }),
  };
}

function toFile(path: string, from: string): string {
  if (path === "") return from;
  const at = path.startsWith(basePlace) ? path.slice(basePlace.length) : posix.join(dirname(from), path);
  return at === "" ? "index.html" : at;
}

describe.runIf(canRun)("the documentation as a site (needs npm run build:docs)", () => {
  const names = canRun
    ? readdirSync(built, { recursive: true })
        .map(String)
        .filter((name) => name.endsWith(".html") && name !== "404.html")
    : [];
  const pages = new Map(names.map((name) => [name, readPage(name)]));

  it("the site has a page for each document, with a unique title", () => {
    const expected = readdirSync(sources).filter((name) => name.endsWith(".md"));
    expect(names).toEqual(expect.arrayContaining(expected.map((name) => name.replace(/\.md$/, ".html"))));
    const titles = [...pages.values()].map(({ title }) => title);
    expect(new Set(titles).size).toBe(titles.length);
    expect(titles).not.toContain("");
  });

  it("the site has no broken link, and links lead from the first page to every other", () => {
    const broken = [...pages].flatMap(([name, { links }]) =>
      links
        .filter(([target, id]) => !(pages.has(target) && (id === "" || pages.get(target)?.ids.has(id))))
        .map(([target, id]) => `${name}: ${target}#${id}`),
    );
    expect(broken).toEqual([]);
    const reached = new Set(["index.html"]);
    for (const name of reached) for (const [target] of pages.get(name)?.links ?? []) reached.add(target);
    expect(names.filter((name) => !reached.has(name))).toEqual([]);
  });

  it("the site has no inline script or style, which the Content-Security-Policy of its pages refuses", () => {
    for (const name of [...names, "404.html"]) {
      const html = readFileSync(join(built, name), "utf8");
      expect(html).not.toMatch(/<script(?![^>]* src=)|<style|<[a-z][^<>]* (?:style|on\w+)="/);
    }
  });
});

describe.runIf(canRun && canRunChromium)("the site in Chromium (needs Debian's chromium-headless-shell)", () => {
  const running = useWorld(embeddedWorld, { env: { STELE_BASE_PATH: "/one/two" } });
  let browser: ConsoleBrowser;
  beforeAll(async () => {
    browser = await ConsoleBrowser.start();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it("the console below a base path links to the site, and the site's search finds a word", async () => {
    const { url } = running().broker;
    expect(url).toMatch(/\/one\/two$/);
    const page: Page = await browser.open(`${url}/console/`);
    await page.getByRole("link", { name: "Docs" }).click();
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("searchbox").fill("standardwebhooks");
    await page.getByRole("option").filter({ hasText: "Callbacks" }).first().click();
    await page.waitForURL(`${url}/docs/callbacks.html**`);
    await page.getByRole("heading", { level: 1, name: "Callbacks" }).waitFor();
    expect(await page.title()).toBe("Callbacks | Stele");
    expect(browser.faults).toEqual([]);
  });
});
