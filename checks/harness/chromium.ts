import { type Browser, chromium } from "playwright-core";
import { findProgram } from "./find-program.ts";

/** Debian's Chromium without a window takes less than half the processor time of the one with windows, and has the same engine. */
const executablePath = findProgram("chromium-headless-shell") ?? findProgram("chromium");

export const canRunChromium = process.env["CHECKS_CHROMIUM"] === "required" || executablePath !== undefined;

/** Starts a browser with a profile of its own. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: executablePath ?? "chromium-headless-shell" });
}
