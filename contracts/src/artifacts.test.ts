import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { topicBytecode, topicRegistryBytecode } from "./artifacts.generated.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const readText = (relative: string) => readFileSync(path(relative), "utf8");

test.each([
  ["Topic", topicBytecode],
  ["TopicRegistry", topicRegistryBytecode],
])("%s fits into the code size limit of EIP-170", (_name, bytecode) => {
  const deployedBytesMax = 24_576;
  expect((bytecode.length - 2) / 2).toBeLessThan(deployedBytesMax);
});

test("TopicRegistry.tree lists exactly the tests of the suites", () => {
  const suites = ["open", "writers", "publish", "views"].map((name) => readText(`./${name}.contract.ts`));
  const titles = suites.flatMap((source) => [...source.matchAll(titlePattern)].map((match) => match[1]));
  const branches = readText("../sol/TopicRegistry.tree")
    .split("\n")
    .slice(1, -1)
    .map((line) => line.replace(/^[│├└─ ]+/, ""));
  // `publish` is one branch of the tree and two `describe` blocks.
  expect([...new Set(titles)]).toEqual([...new Set(branches)]);
});

// The first string after each `describe(`, `test(` and `test.each([…])(`.
const titlePattern = /\b(?:describe|test|test\.each\(\[.*?\]\))\(\s*"([^"]+)"/g;
