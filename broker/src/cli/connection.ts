import { readFileSync } from "node:fs";
import { Stele, type SteleOptions } from "@stele/client";
import { type Command, Option } from "commander";
import { type Context, Contexts } from "./contexts.ts";
import { type CliIo, UsageError } from "./io.ts";
import { type Form, forms } from "../lib/output-form.ts";
import { Output } from "./output.ts";

/** What the flags of every command say. */
export interface ConnectionFlags {
  readonly url?: string;
  readonly adminUrl?: string;
  readonly group?: string;
  readonly keyFile?: string;
  readonly context?: string;
  readonly output: Form;
}

/** A command that runs: its way to the broker, and where its results go. */
export interface Session {
  readonly stele: Stele;
  readonly output: Output;
  readonly io: CliIo;
  readonly url: string;
  readonly signal: AbortSignal;
}

export const urlDefault = "http://127.0.0.1:8080";

export function addOutputFlag(command: Command): Command {
  return command.addOption(new Option("-o, --output <form>", "form of the results").choices(forms).default("table"));
}

/** Adds the flags that say which broker, and in which form. */
export function addConnectionFlags(command: Command): Command {
  return addOutputFlag(
    command
      .addOption(
        new Option(
          "-u, --url <url>",
          `base URL of the broker (default: that of the context, else ${urlDefault})`,
        ).conflicts("context"),
      )
      .option("--admin-url <url>", "base URL of its pages for operators, if they have a port of their own")
      .option("-g, --group <id>", "group (default: that of the context, else the broker's)")
      .option("--key-file <file>", "file with the key or token that the broker asks for")
      .option("-c, --context <name>", "context to use instead of the current one"),
  );
}

/** @throws UsageError for a context that does not exist, or an address that is none. */
export function openSession(flags: ConnectionFlags, io: CliIo): Session {
  const output = new Output(io, flags.output);
  const contexts = new Contexts(io);
  const options = toOptions(flags, findContext(flags, contexts, io.env), io.env);
  const problem = contexts.findProblem();
  if (problem !== undefined) output.note(`warning: ${problem}`);
  try {
    return { stele: new Stele(options), output, io, url: options.url, signal: io.signal };
  } catch {
    throw new UsageError(`not an http(s) URL: ${options.url}`);
  }
}

/** The context that counts: the one of the flag, or the current one unless another address is named. */
function findContext({ context, url }: ConnectionFlags, contexts: Contexts, env: CliIo["env"]): Context | undefined {
  if (context === undefined && (url ?? (env["STELE_URL"] || undefined)) !== undefined) return undefined;
  const { current, contexts: byName } = contexts.read();
  const name = context ?? current;
  if (name === undefined) return undefined;
  const found = byName[name];
  if (found === undefined) throw new UsageError(`there is no context ${name}; see stele context list`);
  return found;
}

/** The key of a context goes only to the address of this context. */
function toOptions(flags: ConnectionFlags, context: Context | undefined, env: CliIo["env"]): SteleOptions {
  return {
    url: flags.url ?? context?.url ?? (env["STELE_URL"] || urlDefault),
    adminUrl: flags.adminUrl ?? context?.adminUrl,
    groupId: flags.group ?? context?.groupId,
    key: flags.keyFile === undefined ? (context?.key ?? (env["STELE_KEY"] || undefined)) : readKey(flags.keyFile),
  };
}

function readKey(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    throw new UsageError(`--key-file: ${file} cannot be read`);
  }
}
