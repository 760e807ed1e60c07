import type { ProofResult } from "@stele/client/proof";
import { expect, test } from "vitest";
import { toSteps } from "./proof-steps.ts";

const statesOf = (result: ProofResult | undefined) => toSteps(result).map(({ state }) => state);

test("every step is unknown before a verification, and proven after a successful one", () => {
  expect(statesOf(undefined)).toEqual(Array(5).fill("unknown"));
  const verified = { status: "verified", event: {} } as ProofResult; // Only its status counts.
  expect(statesOf(verified)).toEqual(Array(5).fill("proven"));
});

test.each([
  ["form", ["refuted", "unknown", "unknown", "unknown", "unknown"]],
  ["header", ["unknown", "unknown", "unknown", "unknown", "refuted"]],
  ["receipt", ["unknown", "unknown", "unknown", "refuted", "proven"]],
  ["log", ["unknown", "unknown", "refuted", "proven", "proven"]],
  ["batch", ["unknown", "refuted", "proven", "proven", "proven"]],
  ["event", ["refuted", "proven", "proven", "proven", "proven"]],
  ["topic", ["refuted", "proven", "proven", "proven", "proven"]],
  ["publisher", ["refuted", "proven", "proven", "proven", "proven"]],
] as const)("refuted at %s: the links checked before it are proven, later ones are unknown", (step, states) => {
  const steps = toSteps({ status: "refuted", step, reason: "why" });
  expect(steps.map(({ state }) => state)).toEqual(states);
  expect(steps.filter(({ reason }) => reason === "why")).toHaveLength(1);
});

test.each([
  ["log", "log"],
  ["topic", "registry"],
] as const)("refuted at %s: no link that is proven says anything about the %s", (step, subject) => {
  const proven = toSteps({ status: "refuted", step, reason: "why" }).filter(({ state }) => state === "proven");
  expect(proven.filter(({ name, claim }) => `${name} ${claim}`.includes(subject))).toEqual([]);
});
