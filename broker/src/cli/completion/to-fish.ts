import { type Completion, contextNames, listContexts } from "./list-completions.ts";

/** Lines for fish: one for the words of a command, and one for each flag with a value. */
export function toFishLines(completion: Completion): string {
  const { commands, words, values } = completion;
  const begin = `complete -c stele -n '${toCondition(completion)}'`;
  const flags = [...values].map(([name, choices]) => `${begin} ${toFlag(name)}${toChoices(choices)}\n`);
  const takesFiles = commands.length === 0 && !words.includes(contextNames);
  return `${begin}${takesFiles ? "" : " -f"} -a ${toList(words)}\n${flags.join("")}`;
}

/** A condition that is true after the words of the command, unless a subcommand follows. */
function toCondition({ path, commands }: Completion): string {
  if (path.length === 0) return "__fish_use_subcommand";
  const seen = path.map((name) => `__fish_seen_subcommand_from ${name}`);
  const below = commands.length === 0 ? [] : [`not __fish_seen_subcommand_from ${commands.join(" ")}`];
  return [...seen, ...below].join("; and ");
}

function toFlag(name: string): string {
  return name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
}

/** A flag that takes any value also completes files, which the value may name. */
function toChoices(choices: readonly string[]): string {
  return choices.length === 0 ? " -r" : ` -x -a ${toList(choices)}`;
}

/** A list of words in quotes. Fish runs a command in parentheses each time it completes. */
function toList(words: readonly string[]): string {
  const text = words.join(" ").replace(contextNames, `(${listContexts})`);
  return `'${text.replaceAll("'", "\\'")}'`;
}
