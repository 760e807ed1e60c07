import type { Command, Option } from "commander";
import { type BrokerCommand, brokerCommands } from "../broker-commands.ts";
import type { SettingFlag } from "../broker-settings.ts";

/** What may follow the words of a command. All texts are ours: letters, digits and hyphens. */
export interface Completion {
  /** Names of the command and those above it: empty for the program itself. */
  readonly path: readonly string[];
  readonly words: readonly string[];
  /** What may follow a flag with a value: nothing for one that takes any value. */
  readonly values: ReadonlyMap<string, readonly string[]>;
}

/** Completions of the program and of all its commands; `settings` are the flags of those that work on the settings of a broker. */
export function listCompletions(program: Command, settings: readonly SettingFlag[]): readonly Completion[] {
  return listBelow(program, { path: [], settings });
}

interface Place {
  readonly path: readonly string[];
  readonly settings: readonly SettingFlag[];
}

function listBelow(command: Command, { path, settings }: Place): readonly Completion[] {
  const [name = ""] = path;
  const brokerCommand = path.length === 1 && Object.hasOwn(brokerCommands, name) ? brokerCommands[name] : undefined;
  const own =
    brokerCommand === undefined ? ofCommand(command, path) : ofBrokerCommand(brokerCommand, { path, settings });
  const below = command.commands.flatMap((child) => listBelow(child, { path: [...path, child.name()], settings }));
  return [own, ...below];
}

function ofCommand(command: Command, path: readonly string[]): Completion {
  const { options } = command;
  const names = command.commands.map((child) => child.name());
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const flags = options.flatMap(({ long }) => long ?? []);
  return { path, words: [...names, ...choices, ...flags, "--help"], values: new Map(options.flatMap(toValues)) };
}

function toValues({
  short,
  long,
  required,
  argChoices = [],
}: Option): readonly (readonly [string, readonly string[]])[] {
  if (!required) return [];
  return [short, long].flatMap((name) => (name === undefined ? [] : [[name, argChoices] as const]));
}

function ofBrokerCommand({ actions = [], flags, takesSettings }: BrokerCommand, { path, settings }: Place): Completion {
  const all = takesSettings ? [...flags, ...settings] : flags;
  return {
    path,
    words: [...actions, ...all.map(({ name }) => name).filter((name) => name.startsWith("--")), "--help"],
    values: new Map(all.flatMap(({ name, choices }) => (choices === undefined ? [] : [[name, choices] as const]))),
  };
}
