import { Argument, type Command } from "commander";
import { type Completion, listCompletions } from "../completion/list-completions.ts";
import { toBashFunction } from "../completion/to-bash.ts";
import { toFishLines } from "../completion/to-fish.ts";
import { type CliIo, write } from "../io.ts";
import { addExamples } from "./define.ts";

const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

export function defineCompletion(program: Command, io: CliIo): void {
  const command = program
    .command("completion")
    .description("Prints a script that completes commands, flags and their values in a shell.")
    .addArgument(new Argument("<shell>").choices(shells))
    .action(async (shell: Shell) => {
      const { flags } = await io.loadSettings();
      await write(io.stdout, scripts[shell](listCompletions(program, flags)));
    });
  addExamples(command, [
    "source <(stele completion bash)",
    "source <(stele completion zsh)",
    "stele completion fish > ~/.config/fish/completions/stele.fish",
  ]);
}

const scripts: Readonly<Record<Shell, (completions: readonly Completion[]) => string>> = {
  bash: (completions) => `${toBashFunction(completions)}complete -o default -F _stele stele\n`,
  zsh: (completions) =>
    `autoload -U +X bashcompinit && bashcompinit\n${toBashFunction(completions)}complete -o default -F _stele stele\n`,
  fish: (completions) => completions.map(toFishLines).join(""),
};
