import { type Browser, chromium } from "playwright-core";
import { findProgram } from "./find-program.ts";

/** Debian's `chromium-headless-shell` has the engine of its `chromium`, and needs less than half the processor time. */
const executablePath = findProgram("chromium-headless-shell") ?? findProgram("chromium");

/** Whether to run the tests in a browser. With CHECKS_CHROMIUM=required, a missing browser fails them instead of skipping them. */
export const canRunChromium = process.env["CHECKS_CHROMIUM"] === "required" || executablePath !== undefined;

/** Starts a browser with a profile of its own. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: executablePath ?? "chromium-headless-shell" });
}
