import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { findNodeProblem } from "./node-version.ts";

it.each([
  ["18.20.8", "Node.js 20.19 or later is needed; this is 18.20.8."],
  ["20.18.3", "Node.js 20.19 or later is needed; this is 20.18.3."],
  ["20.19.0", undefined],
  ["22.0.0", undefined],
])("findNodeProblem returns for Node.js %s: %j", (version, problem) => {
  expect(findNodeProblem(version)).toBe(problem);
});

it("needs the version that package.json names", () => {
  const { engines } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
    readonly engines: { readonly node: string };
  };
  expect(findNodeProblem("0.0.0")).toContain(engines.node.replace(">=", "Node.js "));
});
