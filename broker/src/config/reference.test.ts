import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { renderReference } from "./reference.ts";

test("docs/configuration.md matches the settings table; update it with `node tools/generate-config-docs.mjs --write`", () => {
  const page = readFileSync(new URL("../../../docs/configuration.md", import.meta.url), "utf8");
  expect(page).toBe(renderReference());
});
