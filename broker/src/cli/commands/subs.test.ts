import { afterEach, expect, it, vi } from "vitest";
import { run } from "../testing/run.ts";

afterEach(() => vi.unstubAllGlobals());

it.each([
  ["pause", ["--host", "typo.example"]],
  ["skip", ["--all", "--dry-run"]],
])("subs %s says that it found no subscription", async (order, flags) => {
  vi.stubGlobal("fetch", async () => Response.json({ items: [] }));
  const { code, stdout, stderr } = await run(["subs", order, ...flags], { format: [] });
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: [], stderr: "no subscription matches\n" });
});
