import type { Command, Option } from "commander";
import { type BrokerCommand, brokerCommands } from "../broker-commands.ts";
import type { SettingFlag } from "../broker-settings.ts";

/** Placeholder for the names of the contexts, which the shell looks up when it completes. */
export const contextNames = "<contexts>";

/** Shell command that prints the names of the contexts. */
export const listContexts = "stele context list 2>/dev/null </dev/null | sed '1d;s/ .*//'";

/** What may follow a command on the command line. No text needs quoting: all are our own letters, digits and hyphens. */
export interface Completion {
  /** Names of the command's parents and of the command itself; empty for the program. */
  readonly path: readonly string[];
  /** Names of the subcommands. */
  readonly commands: readonly string[];
  readonly words: readonly string[];
  /** The values of each flag that takes one; empty for a flag that takes any value. */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

/** Completions of the program and of all its commands. `settings` are the flags for the settings of a broker. */
export function listCompletions(program: Command, settings: readonly SettingFlag[]): readonly Completion[] {
  return listBelow(program, { path: [], settings });
}

interface Place {
  readonly path: readonly string[];
  readonly settings: readonly SettingFlag[];
}

function listBelow(command: Command, { path, settings }: Place): readonly Completion[] {
  const [name = "start"] = path;
  const brokerCommand = path.length <= 1 && Object.hasOwn(brokerCommands, name) ? brokerCommands[name] : undefined;
  const ofBroker = brokerCommand && ofBrokerCommand(brokerCommand, { path, settings });
  const own = ofCommand(command, path);
  const below = command.commands.flatMap((child) => listBelow(child, { path: [...path, child.name()], settings }));
  const known = ofBroker !== undefined && path.length === 0 ? join(own, ofBroker) : (ofBroker ?? own);
  return [known, ...below];
}

/** `stele` without a command starts a broker, so it completes its own flags and those of `stele start`. */
function join(own: Completion, ofBroker: Completion): Completion {
  const words = [...new Set([...own.words, ...ofBroker.words])];
  return { ...own, words, values: new Map([...own.values, ...ofBroker.values]) };
}

function ofCommand(command: Command, path: readonly string[]): Completion {
  const { options, registeredArguments } = command;
  const commands = command.commands.map((child) => child.name());
  const choices = registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const contexts = path[0] === "context" && registeredArguments.length > 0 ? [contextNames] : [];
  const flags = options.flatMap(({ long }) => long ?? []);
  const words = [...commands, ...choices, ...contexts, ...flags, "--help"];
  return { path, commands, words, values: new Map(options.flatMap(toValues)) };
}

function toValues({
  short,
  long,
  required,
  argChoices = [],
}: Option): readonly (readonly [string, readonly string[]])[] {
  if (!required) return [];
  const choices = long === "--context" ? [contextNames] : argChoices;
  return [short, long].flatMap((name) => (name === undefined ? [] : [[name, choices] as const]));
}

function ofBrokerCommand({ actions = [], flags, takesSettings }: BrokerCommand, { path, settings }: Place): Completion {
  const all = takesSettings ? [...flags, ...settings] : flags;
  return {
    path,
    commands: [],
    words: [...actions, ...all.map(({ name }) => name).filter((name) => name.startsWith("--")), "--help"],
    values: new Map(
      all.flatMap((flag) => {
        const choices = choicesOf(flag);
        return choices === undefined ? [] : [[flag.name, choices] as const];
      }),
    ),
  };
}

function choicesOf({ name, choices }: SettingFlag): readonly string[] | undefined {
  return name === "--context" ? [contextNames] : choices;
}
