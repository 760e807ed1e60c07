import { Argument, type Command } from "commander";
import { type CliIo, write } from "../io.ts";
import { addExamples } from "./define.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** What may follow the words of a command. */
interface Completion {
  /** Names of the command and those above it: empty for the program itself. */
  readonly path: readonly string[];
  readonly words: readonly string[];
}

export function defineCompletion(program: Command, io: CliIo): void {
  const command = program
    .command("completion")
    .description("Prints a script that completes commands and flags in a shell.")
    .addArgument(new Argument("<shell>").choices(shells))
    .action((shell: Shell) => write(io.stdout, scripts[shell](listCompletions(program, []))));
  addExamples(command, [
    "source <(stele completion bash)",
    "source <(stele completion zsh)",
    "stele completion fish > ~/.config/fish/completions/stele.fish",
  ]);
}

function listCompletions(command: Command, path: readonly string[]): readonly Completion[] {
  const flags = command.options.flatMap(({ long }) => long ?? []);
  const names = command.commands.map((child) => child.name());
  const own = { path, words: [...names, ...flags, "--help"] };
  return [own, ...command.commands.flatMap((child) => listCompletions(child, [...path, child.name()]))];
}

const scripts: Readonly<Record<Shell, (completions: readonly Completion[]) => string>> = {
  bash: (completions) => `${toBashFunction(completions)}complete -o default -F _stele stele\n`,
  zsh: (completions) =>
    `autoload -U +X bashcompinit && bashcompinit\n${toBashFunction(completions)}complete -o default -F _stele stele\n`,
  fish: (completions) => completions.map(toFishLines).join(""),
};

/** Tries the longest command first. Names and flags are ours: letters and hyphens. */
function toBashFunction(completions: readonly Completion[]): string {
  const cases = completions
    .toSorted((left, right) => right.path.length - left.path.length)
    .map(
      ({ path, words }) => `    ${path.length === 0 ? "" : `"${path.join(" ")}"`}*) words="${words.join(" ")}" ;;\n`,
    );
  return `_stele() {\n  local words line="\${COMP_WORDS[*]:1:COMP_CWORD-1}"\n  case "$line" in\n${cases.join("")}  esac\n  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))\n}\n`;
}

function toFishLines({ path, words }: Completion): string {
  const condition =
    path.length === 0
      ? "__fish_use_subcommand"
      : path.map((name) => `__fish_seen_subcommand_from ${name}`).join("; and ");
  return `complete -c stele -n '${condition}' -a '${words.join(" ")}'\n`;
}
