import type { Command } from "commander";
import { addOutputFlag } from "../connection.ts";
import { type ContextFile, Contexts } from "../contexts.ts";
import { checkGroup } from "../find-broker.ts";
import { checkHttpUrl, withoutPassword } from "../http-url.ts";
import { type CliIo, CommandFailed, UsageError } from "../io.ts";
import type { OutputFormat } from "../../lib/output-format.ts";
import { type Column, Output } from "../output.ts";
import { readAll } from "../stdin.ts";
import { addExamples } from "./define.ts";

interface AddFlags {
  readonly url: string;
  readonly adminUrl?: string;
  readonly group?: string | undefined;
  readonly key?: true;
}

/** A context as the command prints it, without its key. */
interface ContextRow {
  readonly name: string;
  readonly isCurrent: boolean;
  readonly url: string;
  readonly adminUrl?: string | undefined;
  readonly groupId?: string | undefined;
  readonly hasKey: boolean;
}

/** A subcommand that may change the contexts, and then lists them. */
interface Change<Flags> {
  readonly usage: string;
  readonly summary: string;
  readonly examples: readonly string[];
  readonly flags?: (command: Command) => Command;
  readonly change: (name: string, flags: Flags) => void | Promise<void>;
}

const namePattern = /^[A-Za-z0-9][\w.-]{0,63}$/;

const columns: readonly Column<ContextRow>[] = [
  { title: "NAME", of: ({ name }) => name },
  { title: "CURRENT", of: ({ isCurrent }) => (isCurrent ? "*" : "") },
  { title: "URL", of: ({ url }) => url },
  { title: "GROUP", of: ({ groupId }) => groupId },
  { title: "KEY", of: ({ hasKey }) => (hasKey ? "yes" : "") },
];

export function defineContext(program: Command, io: CliIo): void {
  const parent = program.command("context").description("Names brokers, with their addresses and keys.");
  const contexts = new Contexts(io);
  const define = <Flags>(change: Change<Flags>): void => defineChange(parent, { contexts, io, change });
  define<AddFlags>({
    usage: "add <name>",
    summary: "Adds or replaces a context, and makes it the current one.",
    examples: [
      "stele context add local --url http://127.0.0.1:8080",
      "stele context add shop --url https://broker.example.org --key < key.txt",
    ],
    flags: addFlags,
    change: (name, flags) => addContext(contexts, { name, flags, io }),
  });
  define({
    usage: "use <name>",
    summary: "Makes a context the current one.",
    examples: ["stele context use local"],
    change: (name) => contexts.change((file) => ({ ...file, current: toKnown(file, name) })),
  });
  define({
    usage: "remove <name>",
    summary: "Removes a context and its key.",
    examples: ["stele context remove local"],
    change: (name) => contexts.change((file) => without(file, toKnown(file, name))),
  });
  define({
    usage: "list",
    summary: "Lists the contexts, without their keys.",
    examples: ["stele context list"],
    change: () => {},
  });
}

function defineChange<Flags>(
  parent: Command,
  { contexts, io, change }: { readonly contexts: Contexts; readonly io: CliIo; readonly change: Change<Flags> },
): void {
  const command = parent.command(change.usage).description(change.summary);
  addOutputFlag(change.flags?.(command) ?? command);
  addExamples(command, change.examples).action(async () => {
    const flags = command.opts<Flags & { readonly output: OutputFormat }>();
    await change.change(String(command.args[0]), flags);
    await new Output(io, flags.output).rows(toRows(contexts), columns);
  });
}

function addFlags(command: Command): Command {
  return command
    .requiredOption("-u, --url <url>", "base URL of the broker")
    .option("--admin-url <url>", "base URL of the broker's pages for operators, if they have their own port")
    .option("-g, --group <id>", "group of calls that name no group")
    .option("--key", "read the key from stdin, so that the shell's history does not contain it");
}

async function addContext(
  contexts: Contexts,
  { name, flags, io }: { readonly name: string; readonly flags: AddFlags; readonly io: CliIo },
): Promise<void> {
  if (!namePattern.test(name))
    throw new UsageError(
      `${name} is no name of a context: begin with a letter or digit, and use up to 64 of A-Z a-z 0-9 _ . -`,
    );
  const { url, adminUrl, group: groupId } = flags;
  checkHttpUrl(url, "--url");
  checkHttpUrl(adminUrl ?? url, "--admin-url");
  checkGroup(groupId);
  const key = flags.key ? await readKey(io) : undefined;
  const added = { url, ...(adminUrl && { adminUrl }), ...(groupId && { groupId }), ...(key && { key }) };
  await contexts.change(({ contexts: others }) => ({ current: name, contexts: { ...others, [name]: added } }));
}

async function readKey(io: CliIo): Promise<string> {
  if (io.stdin.isTTY === true) new Output(io, "table").note("reading the key from this terminal; Ctrl-D ends");
  const key = Buffer.from(await readAll(io))
    .toString()
    .trim();
  if (key === "") throw new UsageError("--key: stdin is empty, so the context was not added");
  return key;
}

function without({ current, contexts }: ContextFile, name: string): ContextFile {
  const { [name]: _removed, ...rest } = contexts;
  return { ...(current === undefined || current === name ? {} : { current }), contexts: rest };
}

function toKnown({ contexts }: ContextFile, name: string): string {
  if (Object.hasOwn(contexts, name)) return name;
  throw new CommandFailed(`there is no context ${name}`);
}

function toRows(contexts: Contexts): readonly ContextRow[] {
  const { current, contexts: byName } = contexts.read();
  return Object.entries(byName).map(([name, { key, url, adminUrl, ...rest }]) => ({
    name,
    isCurrent: name === current,
    url: withoutPassword(url),
    ...(adminUrl !== undefined && { adminUrl: withoutPassword(adminUrl) }),
    ...rest,
    hasKey: key !== undefined,
  }));
}
