import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AxeResults } from "axe-core";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { startChromium } from "../../harness/chromium.ts";

/** Folder for the screenshots of the last run. People look at them; no test does. */
const pictures = process.env["CHECKS_PICTURES"] ?? join(tmpdir(), "stele-console-pictures");

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const grave: ReadonlySet<unknown> = new Set(["serious", "critical"]);

const watchPolicy = `document.addEventListener("securitypolicyviolation", (violation) =>
  reportViolation([violation.violatedDirective, violation.blockedURI, violation.sample].join(" ")));`;

/** Each colour scheme and each width once: axe's findings depend on the one or the other, not on their combination. */
const looks = [
  { name: "light-wide", colorScheme: "light", viewport: { width: 1280, height: 860 } },
  { name: "dark-narrow", colorScheme: "dark", viewport: { width: 390, height: 780 } },
] as const;

/** Unlocks a page, which is read-only after each load. */
export async function unlock(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Unlock changes" }).click();
  await page.getByRole("button", { name: "Lock changes", exact: true }).waitFor();
}

/** A Chromium that records the faults of the pages that `open` opens, and of further tabs in their contexts. */
export class ConsoleBrowser implements AsyncDisposable {
  readonly #browser: Browser;
  /** Errors of scripts, violations of the Content-Security-Policy, and requests to other servers. */
  readonly faults: string[] = [];

  private constructor(browser: Browser) {
    this.#browser = browser;
  }

  static async start(): Promise<ConsoleBrowser> {
    return new ConsoleBrowser(await startChromium());
  }

  /** Opens a URL in a new tab, which shares no cookies and no storage with others. */
  async open(url: string): Promise<Page> {
    const context = await this.#browser.newContext({ permissions: ["clipboard-read", "clipboard-write"] });
    await this.#watch(context, url);
    const page = await context.newPage();
    await page.goto(url);
    return page;
  }

  /** Returns the serious and critical violations that axe finds on a view in each look, and takes screenshots. */
  async examine(
    url: string,
    { name, ready }: { readonly name: string; readonly ready: (page: Page) => Promise<void> },
  ) {
    mkdirSync(pictures, { recursive: true });
    const found: string[] = [];
    for (const look of looks) {
      await using context = await this.#examiner(look);
      const page = await context.newPage();
      await page.goto(url);
      await ready(page);
      await page.screenshot({ path: join(pictures, `${name}-${look.name}.png`) });
      await page.evaluate(axe);
      const { violations }: AxeResults = await page.evaluate('axe.run({ resultTypes: ["violations"] })');
      for (const { id, impact, nodes } of violations) {
        if (grave.has(impact)) found.push(`${look.name}: ${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      }
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }

  /** A browser context in this look. It bypasses the Content-Security-Policy, which would refuse the test's axe script. */
  #examiner({ colorScheme, viewport }: (typeof looks)[number]): Promise<BrowserContext> {
    return this.#browser.newContext({ bypassCSP: true, colorScheme, viewport, reducedMotion: "reduce" });
  }

  async #watch(context: BrowserContext, url: string): Promise<void> {
    const { origin } = new URL(url);
    context.on("weberror", (fault) => this.faults.push(`error: ${fault.error().message}`));
    context.on("request", (request) => {
      if (new URL(request.url()).origin !== origin) this.faults.push(`request: ${request.url()}`);
    });
    await context.exposeFunction("reportViolation", (text: string) => this.faults.push(`policy: ${text}`));
    await context.addInitScript(watchPolicy);
  }
}
