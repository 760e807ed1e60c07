import { quote } from "@stele/wire";
import { suggestNearest } from "./nearest-name.ts";

/** The action that the command line asks for. */
export type Action = "run" | "check-config" | "help" | "version";

/** The parsed arguments. `values` is by flag, as written. */
export interface Flags {
  readonly action: Action;
  readonly configFile: string | undefined;
  readonly values: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
}

const configFlag = "--config";
const actionFlags: Readonly<Record<string, Action>> = {
  "--check-config": "check-config",
  "--help": "help",
  "-h": "help",
  "--version": "version",
};

/** Whether a flag asks for an action, and so has no value. */
export function isActionFlag(flag: string): boolean {
  return Object.hasOwn(actionFlags, flag);
}

/** Reads `--flag value` and `--flag=value`. Known flags are those in `valueFlags`, `--config` and the flags of actions. */
export function parseFlags(argv: readonly string[], valueFlags: readonly string[]): Flags {
  const reader = new FlagReader([...valueFlags, configFlag]);
  reader.read(argv);
  const { [configFlag]: configFile, ...values } = Object.fromEntries(reader.values);
  return { action: reader.action, configFile, values: new Map(Object.entries(values)), problems: reader.problems };
}

class FlagReader {
  action: Action = "run";
  readonly values = new Map<string, string>();
  readonly problems: string[] = [];
  readonly #valueFlags: readonly string[];

  constructor(valueFlags: readonly string[]) {
    this.#valueFlags = valueFlags;
  }

  read(argv: readonly string[]): void {
    let rest = argv;
    while (rest.length > 0) rest = rest.slice(this.#readOne(rest));
  }

  /** Reads the flag at the front; returns how many arguments it used. */
  #readOne([argument = "", next]: readonly string[]): number {
    const [flag, inline] = splitAtEquals(argument);
    if (!flag.startsWith("-")) return this.#refuse(`${quote(argument)} is not expected: every setting is a flag`);
    const action = actionFlags[flag];
    if (action !== undefined) return this.#readAction(flag, { action, inline });
    if (!this.#valueFlags.includes(flag)) return this.#refuseUnknown(flag, { inline, next });
    if (this.values.has(flag)) this.problems.push(`${flag} is given more than once`);
    const value = inline ?? next;
    if (value === undefined) return this.#refuse(`${flag} needs a value`);
    this.values.set(flag, value);
    return inline === undefined ? 2 : 1;
  }

  #readAction(flag: string, { action, inline }: { action: Action; inline: string | undefined }): number {
    if (inline !== undefined) return this.#refuse(`${flag} takes no value`);
    // Help and version win over everything else.
    if (this.action === "run" || this.action === "check-config") this.action = action;
    return 1;
  }

  /** Treats the argument after an unknown flag as its value, so that one mistake gives one problem. */
  #refuseUnknown(flag: string, { inline, next }: { inline: string | undefined; next: string | undefined }): number {
    const known = [...this.#valueFlags, ...Object.keys(actionFlags).filter((name) => name.startsWith("--"))];
    this.#refuse(`${quote(flag)} is not a known flag${suggestNearest(flag, known)}`);
    return inline === undefined && next !== undefined && !next.startsWith("-") ? 2 : 1;
  }

  #refuse(problem: string): number {
    this.problems.push(problem);
    return 1;
  }
}

function splitAtEquals(argument: string): readonly [flag: string, inline: string | undefined] {
  const index = argument.indexOf("=");
  return index < 0 ? [argument, undefined] : [argument.slice(0, index), argument.slice(index + 1)];
}
