import { type Completion, contextNames, listContexts } from "./list-completions.ts";

/**
 * A completion function for bash and zsh. It tries the longest command first. If it offers nothing, the shell offers files. Zsh needs the arithmetic
 * expansion for the length of a slice.
 */
export function toBashFunction(completions: readonly Completion[]): string {
  const cases = completions.toSorted((left, right) => right.path.length - left.path.length).map(toCase);
  return [
    "_stele() {",
    `  local words line="\${COMP_WORDS[*]:1:$((COMP_CWORD-1))} " previous="\${COMP_WORDS[COMP_CWORD-1]}"`,
    '  case "$line" in',
    ...cases,
    "  esac",
    `  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))`,
    "}",
    "",
  ].join("\n");
}

function toCase({ path, words, values }: Completion): string {
  const pattern = path.length === 0 ? "*" : `"${path.join(" ")} "*`;
  const choices = [...namesByChoices(values)].map(
    ([list, names]) => `      ${names.join("|")}) words="${toText(list)}" ;;`,
  );
  return [
    `    ${pattern}) words="${toText(words.join(" "))}"`,
    ...(choices.length === 0 ? [] : ['      case "$previous" in', ...choices, "      esac"]),
    "      ;;",
  ].join("\n");
}

/** Groups the flags by their values. */
function namesByChoices(values: Completion["values"]): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const [name, choices] of values) {
    const list = choices.join(" ");
    names.set(list, [...(names.get(list) ?? []), name]);
  }
  return names;
}

function toText(words: string): string {
  return words.replace(contextNames, `$(${listContexts})`);
}
