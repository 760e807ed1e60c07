#!/usr/bin/env node
import { findDescriptorProblem } from "./lib/system/descriptors.ts";

/** As main.ts has it for settings that are refused. */
const refused = 2;

// The broker is imported only then: with too few descriptors that import fails, and names a package.
const problem = findDescriptorProblem();
if (problem === undefined) {
  await import("./main.ts");
} else {
  process.stderr.write(`stele: ${problem}\n`);
  process.exitCode = refused;
}
