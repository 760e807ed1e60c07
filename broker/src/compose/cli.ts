import type { BrokerSettings } from "../cli/broker-settings.ts";
import type { CliIo } from "../cli/io.ts";
import { runCli } from "../cli/run-cli.ts";

/** Runs a client command, and returns its exit code. Loads a broker's settings only if the command needs them. Never throws. */
export function runCommand(argv: readonly string[], io: Omit<CliIo, "loadSettings">, version: string): Promise<number> {
  return runCli(argv, { ...io, loadSettings }, version);
}

async function loadSettings(): Promise<BrokerSettings> {
  return (await import("./settings.ts")).brokerSettings;
}
