import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readMethods } from "./read-methods.ts";

const page = readFileSync(new URL("../../../../docs/chain.md", import.meta.url), "utf8");

function namesIn(text: string): readonly string[] {
  return [...text.matchAll(/`((?:eth|net|web3)_\w+)`/g)].map(([, name = ""]) => name);
}

it("docs/chain.md lists the readable methods", () => {
  const [, list = ""] = /<!-- methods -->(.*?)<!-- methods end -->/s.exec(page) ?? [];
  expect(namesIn(list)).toEqual([...readMethods.keys()]);
});

it("docs/chain.md names the methods that run one at a time", () => {
  const computations = [...readMethods].filter(([, cost]) => cost === "computation").map(([name]) => name);
  const [, sentence = ""] = /never waits for a call\.(.*?)run\s+one\s+at a time/s.exec(page) ?? [];
  expect(namesIn(sentence)).toEqual(computations);
});
