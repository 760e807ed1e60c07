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

const failure = { eventId: "2cf24dba-1-1", reason: "answered 500" };

it.each([
  ["a dead letter fails again", [], { events: 2, letters: { left: 1, failure } }, "1 dead letter is left"],
  ["its time runs out", [], { events: 300, letters: { left: 700 } }, "700 dead letters are left"],
  [
    "the one of --event fails again",
    ["--event", failure.eventId],
    { events: 0, letters: { left: 3, failure } },
    "the dead letter was not delivered",
  ],
  [
    "one of two that have the eventId of --event fails again",
    ["--event", failure.eventId],
    { events: 1, letters: { left: 1, failure } },
    "the dead letter was not delivered",
  ],
])("subs redeliver fails if %s", async (...[, flags, result, problem]) => {
  vi.stubGlobal("fetch", async () => Response.json({ id: "a", dryRun: false, ...result }));
  const { code, stdout, stderr } = await run(["subs", "redeliver", "a", ...flags], { format: [] });
  const says = `stele: ${problem}: give the order again\n`;
  expect({ code, stderr }).toEqual({ code: 1, stderr: says });
  expect(stdout.join("").includes("answered 500")).toBe("failure" in result.letters);
});

it.each([
  ["all dead letters are delivered", [], { events: 2, letters: { left: 0 } }],
  [
    "that of --event is delivered, and others are left",
    ["--event", "2cf24dba-1-1"],
    { events: 1, letters: { left: 1 } },
  ],
  ["that of --event was removed meanwhile", ["--event", "2cf24dba-1-1"], { events: 0, letters: { left: 0 } }],
  ["it is a dry run", ["--dry-run"], { events: 2, dryRun: true }],
  ["it is a dry run for no dead letter", ["--dry-run", "--event", "2cf24dba-1-1"], { events: 0, dryRun: true }],
])("subs redeliver ends without an error if %s", async (...[, flags, result]) => {
  vi.stubGlobal("fetch", async () => Response.json({ id: "a", dryRun: false, ...result }));
  expect(await run(["subs", "redeliver", "a", ...flags], {})).toMatchObject({ code: 0, stderr: "" });
});
