#!/usr/bin/env node
import { setDefaultAutoSelectFamilyAttemptTimeout } from "node:net";
import { brokerCommands } from "./cli/broker-commands.ts";
import { findDescriptorProblem } from "./lib/system/descriptors.ts";
import { findNodeProblem } from "./lib/system/node-version.ts";

/** Exit code for refused settings, as in main.ts. */
const refused = 2;
/**
 * How long to try one address of a chain endpoint, token issuer, database or broker before the next one, in milliseconds. Node's 250 ms are too short for a
 * distant server, and for a lost packet, which TCP sends again after a second: Node would leave the good address, and might find only one that leads nowhere.
 */
const addressMsMax = 2_000;
const programFlags: ReadonlySet<string> = new Set(["--help", "-h"]);

setDefaultAutoSelectFamilyAttemptTimeout(addressMsMax);

// `stele help NAME` means `stele NAME --help`: these commands parse their own arguments, so only they know their help.
const [helpCommand, helpTopic = ""] = process.argv.slice(2);
if (helpCommand === "help" && Object.hasOwn(brokerCommands, helpTopic)) process.argv.splice(2, 2, helpTopic, "--help");

// Without a command, or with a flag first (other than --help), `stele` starts a broker.
const [command] = process.argv.slice(2);
const isClient =
  command !== undefined &&
  (command.startsWith("-") ? programFlags.has(command) : !Object.hasOwn(brokerCommands, command));

// Imports either the client or the broker, since a client needs no part of a broker. Checks the version of Node.js and, for a broker, the file descriptors
// first: with an older version or too few descriptors, the import would fail with an error that blames some package.
const problem = findNodeProblem() ?? findArgumentProblem() ?? (isClient ? undefined : findDescriptorProblem());
if (problem !== undefined) {
  process.stderr.write(`stele: ${problem}\n`);
  process.exitCode = refused;
} else if (isClient) {
  await import("./cli-main.ts");
} else {
  await import("./main.ts");
}

/** Node.js replaces bytes that are not UTF-8 by U+FFFD, so the broker would publish other bytes than the user gave. */
function findArgumentProblem(): string | undefined {
  if (!process.argv.slice(2).some((word) => word.includes("\uFFFD"))) return undefined;
  const advice = command === "pub" ? "pass such content on stdin" : "use a path or a name without them";
  return `an argument has bytes that are not UTF-8, or the character U+FFFD: ${advice}`;
}
