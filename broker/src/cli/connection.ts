import { Stele } from "@stele/client";
import { type Command, Option } from "commander";
import { Contexts } from "./contexts.ts";
import { type BrokerAddress, type BrokerFlags, findBroker, urlDefault } from "./find-broker.ts";
import type { CliIo } from "./io.ts";
import { type OutputFormat, outputFormats } from "../lib/output-format.ts";
import { Output } from "./output.ts";

/** Flags of every command that calls a broker. */
export interface ConnectionFlags extends BrokerFlags {
  readonly output: OutputFormat;
}

/** A running command: its connection to the broker, and its output. */
export interface Session {
  readonly stele: Stele;
  readonly output: Output;
  readonly io: CliIo;
  readonly broker: BrokerAddress;
  readonly signal: AbortSignal;
}

export function addOutputFlag(command: Command): Command {
  return command.addOption(
    new Option("-o, --output <format>", "format of the results").choices(outputFormats).default("table"),
  );
}

/** Adds the flags that choose the broker and the format of the output. */
export function addConnectionFlags(command: Command): Command {
  return addOutputFlag(
    command
      .addOption(
        new Option(
          "-u, --url <url>",
          `base URL of the broker (default: $STELE_URL, else that of the context, else ${urlDefault})`,
        ).conflicts("context"),
      )
      .option("--admin-url <url>", "base URL of the broker's pages for operators, if they have their own port")
      .option(
        "-g, --group <id>",
        "group (default: that of the context; else the broker's default group, for subs all groups)",
      )
      .option("--key-file <file>", "file with the key or token that the broker asks for")
      .option("-c, --context <name>", "context to use instead of the current one"),
  );
}

/** @throws UsageError for a context that does not exist, an unreadable key file, an invalid URL, or a blank group. */
export function openSession(flags: ConnectionFlags, io: CliIo): Session {
  const output = new Output(io, flags.output);
  const contexts = new Contexts(io);
  const broker = findBroker(flags, contexts, io.env);
  const problem = contexts.findProblem();
  if (problem !== undefined) output.note(`warning: ${problem}`);
  return { stele: new Stele(broker), output, io, broker, signal: io.signal };
}
