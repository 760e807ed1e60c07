import { expect, test } from "vitest";
import { findNearestName } from "./nearest-name.ts";

const known = ["STELE_PORT", "STELE_HOST", "STELE_DATA_DIR"];

test.each([
  ["STELE_PROT", "STELE_PORT"],
  ["stele_port", "STELE_PORT"],
  ["STELE_DATADIR", "STELE_DATA_DIR"],
  ["STELE_HOTS", "STELE_HOST"],
])("suggests for %s the name %s", (name, nearest) => {
  expect(findNearestName(name, known)).toBe(nearest);
});

test.each(["STELE_LOGGING_LEVEL_X", ""])("suggests no name for %j", (name) => {
  expect(findNearestName(name, known)).toBeUndefined();
});
