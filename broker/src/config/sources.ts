import { quote } from "@stele/wire";
import { parseJson, RepeatedName } from "./decode-json.ts";
import { type Action, parseFlags } from "./flags.ts";
import { suggestNearest } from "./nearest-name.ts";
import { environmentName, flagName, type SettingsTable } from "./setting.ts";

/** Input of the configuration. The caller supplies it: this file uses neither `process` nor the file system. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Arguments after the program's name. */
  readonly argv: readonly string[];
  /** Reads a text file; throws if it cannot. */
  readonly readFile: (path: string) => string;
}

/** A value as written, and its origin. */
export interface GivenValue {
  readonly value: unknown;
  readonly origin: string;
}

/** All given values, unchecked except for their names. */
export interface Sources {
  readonly action: Action;
  readonly given: ReadonlyMap<string, GivenValue>;
  /** The config file and its content; undefined without one. */
  readonly file: { readonly path: string; readonly given: ReadonlyMap<string, GivenValue> } | undefined;
  /** The environment variables that values refer to, if set and not empty. */
  readonly variables: ReadonlyMap<string, string>;
  readonly problems: readonly string[];
}

interface Source {
  readonly given: ReadonlyMap<string, GivenValue>;
  readonly problems: readonly string[];
  /** Whether some input could not be read, which is a problem by itself. It may refer to variables, so no variable is then reported as unknown. */
  readonly isUnread?: boolean;
}

const configFileVariable = "STELE_CONFIG";
/** Variables of the client commands (docs/cli.md). */
const clientVariables = ["STELE_URL", "STELE_KEY"];

/** Collects the given values of a table: the flag wins over the environment, the environment over the config file. */
export function readSources(table: SettingsTable, environment: Environment): Sources {
  const flags = parseFlags(environment.argv, Object.keys(table).map(flagName));
  const fromFlags = decodeTexts(table, flagName, (flag) => flags.values.get(flag));
  // An empty variable counts as omitted, as most tools expect that pass on variables.
  const fromEnvironment = decodeTexts(table, environmentName, (variable) => environment.env[variable] || undefined);
  const unknownVariables = findUnknownVariables(table, environment.env);
  const path = flags.configFile ?? (environment.env[configFileVariable] || undefined);
  const fromFile = path === undefined ? emptySource : readFileSource(table, path, environment.readFile);
  const given = new Map([...fromFile.given, ...fromEnvironment.given, ...fromFlags.given]);
  const referredTo = variablesReferredTo(table, given);
  const isUnread =
    [fromFlags, fromEnvironment, fromFile].some((source) => source.isUnread) || hasUnreadValue(table, given);
  return {
    action: flags.action,
    given,
    file: path === undefined ? undefined : { path, given: fromFile.given },
    variables: pickVariables(environment.env, referredTo),
    problems: [
      ...flags.problems,
      ...unknownVariables.filter(({ name }) => !isUnread && !referredTo.includes(name)).map(({ problem }) => problem),
      ...fromFile.problems,
      ...fromEnvironment.problems,
      ...fromFlags.problems,
    ],
  };
}

const emptySource: Source = { given: new Map(), problems: [] };

function decodeTexts(
  table: SettingsTable,
  toOrigin: (name: string) => string,
  textOf: (origin: string) => string | undefined,
): Source {
  const given = new Map<string, GivenValue>();
  const problems: string[] = [];
  let isUnread = false;
  for (const [name, setting] of Object.entries(table)) {
    const origin = toOrigin(name);
    const text = textOf(origin);
    if (text === undefined) continue;
    try {
      given.set(name, { value: setting.decode(text), origin });
    } catch (error) {
      if (!(error instanceof RepeatedName)) throw error;
      isUnread = true;
      problems.push(`${origin}: ${error.message}`);
    }
  }
  return { given, problems, isUnread };
}

function findUnknownVariables(
  table: SettingsTable,
  env: Environment["env"],
): readonly { readonly name: string; readonly problem: string }[] {
  const known = [...Object.keys(table).map(environmentName), configFileVariable, ...clientVariables];
  return Object.keys(env)
    .filter((name) => name.startsWith("STELE_") && !known.includes(name))
    .map((name) => ({ name, problem: `${name} is not a known variable${suggestNearest(name, known)}` }));
}

function variablesReferredTo(table: SettingsTable, given: ReadonlyMap<string, GivenValue>): readonly string[] {
  return Object.entries(table).flatMap(([name, { variablesOf }]) => variablesOf?.(given.get(name)?.value) ?? []);
}

/** For settings that can refer to variables: whether the winning value of one is still a text, because it is not JSON. That is reported as a problem. */
function hasUnreadValue(table: SettingsTable, given: ReadonlyMap<string, GivenValue>): boolean {
  return Object.entries(table).some(
    ([name, { variablesOf }]) => variablesOf !== undefined && typeof given.get(name)?.value === "string",
  );
}

function pickVariables(env: Environment["env"], names: readonly string[]): ReadonlyMap<string, string> {
  return new Map(names.flatMap((name) => (env[name] ? [[name, env[name]] as const] : [])));
}

function readFileSource(table: SettingsTable, path: string, readFile: Environment["readFile"]): Source {
  let content: unknown;
  let json = "";
  try {
    json = readFile(path).replace(/^\uFEFF/u, ""); // Editors of Windows write a byte order mark; RFC 8259, section 8.1, allows to ignore it.
    content = parseJson(json);
  } catch (error) {
    const reason = error instanceof Error ? withLine(error.message, json) : String(error);
    return { given: new Map(), problems: [`config file ${path} cannot be used: ${reason}`], isUnread: true };
  }
  if (typeof content !== "object" || content === null || Array.isArray(content)) {
    const reason = "it does not hold a JSON object";
    return { given: new Map(), problems: [`config file ${path} cannot be used: ${reason}`], isUnread: true };
  }
  return readFileKeys(table, path, content);
}

/** How many characters V8 cites before the place of a syntax error, if it cuts the beginning. */
const citedCharacters = 10;
const citing = /^(Unexpected token .+?), (\.\.\.)?"([^]*)"(?:\.\.\.)? is not valid JSON$/;

/** Adds line and column, which Node 20 leaves out, to the message of a syntax error. Removes the piece of the file that V8 cites: it may be a secret. */
function withLine(message: string, json: string): string {
  const [, problem, cut, cited = ""] = citing.exec(message) ?? [];
  const position =
    problem === undefined ? /at position (\d+)$/.exec(message)?.[1] : json.indexOf(cited) + citedCharacters;
  const text = problem === undefined ? message : `${problem} in JSON`;
  if (position === undefined || (problem !== undefined && cut === undefined)) return text;
  const before = json.slice(0, Number(position)).split("\n");
  return `${text} (line ${before.length} column ${(before.at(-1)?.length ?? 0) + 1})`;
}

function readFileKeys(table: SettingsTable, path: string, content: object): Source {
  const given = new Map<string, GivenValue>();
  const problems: string[] = [];
  const known = Object.keys(table);
  for (const [name, value] of Object.entries(content)) {
    if (known.includes(name)) given.set(name, { value, origin: `${name} in ${path}` });
    else problems.push(`${quote(name)} in ${path} is not a known setting${suggestNearest(name, known)}`);
  }
  return { given, problems };
}
