#!/usr/bin/env node
import { brokerCommands } from "./cli/broker-commands.ts";
import { findDescriptorProblem } from "./lib/system/descriptors.ts";

/** As main.ts has it for settings that are refused. */
const refused = 2;
const programFlags: ReadonlySet<string> = new Set(["--help", "-h"]);

// Without a command, and with flags alone, it starts a broker.
const [command] = process.argv.slice(2);
const isClient =
  command !== undefined &&
  (command.startsWith("-") ? programFlags.has(command) : !Object.hasOwn(brokerCommands, command));

// Each is imported only then: a client needs nothing of a broker, and with too few descriptors the import of a broker fails and names a package.
if (isClient) {
  await import("./cli-main.ts");
} else {
  const problem = findDescriptorProblem();
  if (problem === undefined) {
    await import("./main.ts");
  } else {
    process.stderr.write(`stele: ${problem}\n`);
    process.exitCode = refused;
  }
}
