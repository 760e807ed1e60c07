import type { Completion } from "./list-completions.ts";

/** Lines for fish: one for the words of a command, and one for each flag with a value. */
export function toFishLines({ path, words, values }: Completion): string {
  const condition =
    path.length === 0
      ? "__fish_use_subcommand"
      : path.map((name) => `__fish_seen_subcommand_from ${name}`).join("; and ");
  const begin = `complete -c stele -n '${condition}'`;
  const flags = [...values].map(([name, choices]) => `${begin} ${toFlag(name)}${toChoices(choices)}\n`);
  return `${begin} -a '${words.join(" ")}'\n${flags.join("")}`;
}

function toFlag(name: string): string {
  return name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
}

/** A flag that takes any value may name a file. */
function toChoices(choices: readonly string[]): string {
  return choices.length === 0 ? " -r" : ` -x -a '${choices.join(" ")}'`;
}
