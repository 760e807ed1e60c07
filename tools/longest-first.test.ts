import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { longest, waiting } from "./longest-first.mjs";

const root = join(import.meta.dirname, "..");

it.each([...longest, ...waiting])("the file %s exists", (path) => {
  expect(existsSync(join(root, path))).toBe(true);
});
