import { expect, it } from "vitest";
import { renderEventReport } from "./report.ts";

it.each(["json", "ndjson"] as const)("%s has the control characters of others escaped, as a table has", (format) => {
  const refuted = { status: "refuted", step: "form", reason: "no \u009b31m\u202e" } as const; // U+009B begins a command of a terminal.
  const text = renderEventReport(refuted, { format, hasOwnNode: true });
  expect(text).not.toMatch(/[\u009b\u202e]/);
  expect(JSON.parse(text)).toEqual(refuted);
});
