import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { run } from "./testing/run.ts";

beforeEach(() => void vi.stubGlobal("fetch", () => Promise.reject(new Error("no broker is called"))));
afterEach(() => void vi.unstubAllGlobals());

it.each(
  [
    ["tail", "t", "-n", "0"],
    ["tail", "t", "-n", "1x"],
    ["listen", "t", "--forward", "http://127.0.0.1", "-n", "0"],
    ["pub", "t", "x", "--count", "0"],
    ["bench", "--events", "00"],
    ["bench", "--bytes", "0"],
    ["bench", "--concurrency", "0"],
  ].map((argv) => [argv]),
)("%j: refuses a count that is not a number from 1, before it calls the broker", async (argv) => {
  const { code, stdout, stderr } = await run(argv, {});
  expect([code, stdout, stderr]).toEqual([2, [], expect.stringContaining("It must be a number from 1.")]);
});
