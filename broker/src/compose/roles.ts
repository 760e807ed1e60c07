import { existsSync } from "node:fs";
import { join } from "node:path";
import { databaseAddress } from "./database.ts";
import { rolesOf } from "./access.ts";
import {
  type CommandDone,
  type CommandOutcome,
  type CommandContext,
  refuseFurther,
  runOnKeys,
  UsageError,
} from "./access-command.ts";
import { decodeJson } from "../config/decode-json.ts";
import { isClustered } from "../config/derived.ts";
import { describeIssue } from "../config/describe-issue.ts";
import type { Config } from "../config/settings.ts";
import { adminRole, findRuleProblems, isRoleName, rolesMax, type StoredRole } from "../domain/access-role.ts";
import type { AccessRule } from "../domain/access-rule.ts";
import { silentLogger } from "../lib/logger.ts";
import { toEscapedJson, toPrintable } from "../lib/printable.ts";
import type { ApiKeys } from "../ports/api-keys.ts";
import { readSqliteRoles } from "../store/sql/sqlite/sqlite-api-keys.ts";
import { roleRulesSchema } from "@stele/wire";

const usage = `Usage: stele role list
       stele role show NAME
       stele role set NAME RULES
       stele role delete NAME

Shows the roles of the config file and of the store, and changes those of the store. Running brokers learn of a change within a second. Give the
command the broker's settings, such as --data-dir or --config.

RULES is a JSON list as in the config file, such as '[{"actions": ["publish"], "filter": "\${tenant}/#"}]'. A role of the config file overrides
a stored role of the same name, so "set" refuses its name. The broker refuses keys with a role that was deleted.

"-o table" (the default), "-o json" and "-o ndjson" choose the format of the result.

Examples:
  stele role list -o json
  stele role set publisher '[{"actions": ["publish"], "filter": "orders/#"}]'
`;

/** Maximum number of arguments of each action, besides flags. */
const wordsMax: Readonly<Record<string, number>> = { list: 0, show: 1, set: 2, delete: 1 };

interface Run {
  readonly action: string;
  readonly words: readonly string[];
  readonly config: Config;
}

/** Runs `stele role` with the arguments after that word. Never throws. */
export async function runRoles(argv: readonly string[], context: CommandContext): Promise<CommandOutcome> {
  const [action, ...rest] = argv;
  if (action === undefined) return { exitCode: 2, output: "", problem: usage };
  if (argv.includes("--help") || argv.includes("-h")) return { exitCode: 0, output: usage, problem: "" };
  const call = { ...context, words: rest, ownFlags: [], createsFolder: action === "set" };
  return runOnKeys("role", call, (keys, { config, read }) => run(keys, { action, words: read.positional, config }));
}

/** A line for each role of the settings and of the store; empty if access control is off. Does not change the store. Never throws. */
export async function describeRoles(config: Config): Promise<string> {
  if (config.access === undefined) return "";
  try {
    return toLines(config, await readStored(config)).join("");
  } catch (error) {
    const reason = toPrintable(error instanceof Error ? error.message : String(error)); // PostgreSQL may have written a part of it.
    return `${toLines(config, []).join("")}roles of the store: not read, ${reason}\n`;
  }
}

async function readStored(config: Config): Promise<readonly StoredRole[]> {
  if (isClustered(config)) {
    const { readPostgresRoles } = await import("../store/sql/postgres/postgres-api-keys.ts");
    return readPostgresRoles({ url: databaseAddress(config, silentLogger), logger: silentLogger });
  }
  const file = join(config.dataDir, "keys.sqlite");
  return existsSync(file) ? readSqliteRoles(file) : [];
}

function toLines(config: Config, stored: readonly StoredRole[]): readonly string[] {
  const own = rolesOf(config);
  const lines = [...own].map(([name, rules]) =>
    toLine(name, rules, name === adminRole ? "every broker" : "config file"),
  );
  return [
    ...lines,
    ...stored.map(({ name, rules }) => {
      const source = own.has(name) ? "store, overridden by the config file" : "store";
      return rules === undefined ? toDamaged(name) : toLine(name, rules, source);
    }),
  ];
}

function toLine(name: string, rules: readonly AccessRule[], source: string): string {
  return `role ${name} = ${toText(rules)}  (${source})\n`;
}

/** Escaped for a terminal: the group of a rule may be any text. */
function toText(rules: readonly AccessRule[]): string {
  return toEscapedJson(JSON.stringify(rules));
}

function toDamaged(name: string): string {
  return `role ${name} is damaged in the store, and whoever has a key with it is refused: set it again, or revoke the keys\n`;
}

async function run(keys: ApiKeys, { action, words, config }: Run): Promise<CommandDone> {
  refuseFurther(words, wordsMax[action]);
  const [name = "", text = ""] = words;
  if (action === "list") return list(await listStored(keys), config);
  if (!isRoleName(name))
    throw new UsageError("give the name of a role: 1 to 64 letters, digits, dots, hyphens or underscores");
  switch (action) {
    case "show":
      return show(keys, name, config);
    case "set":
      return set(keys, { name, rules: parseRules(text) }, config);
    case "delete":
      if (!(await keys.deleteRole(name))) throw new Error(`there is no role ${name} in the store`);
      return {
        output: `deleted ${name}\n`,
        result: { name, state: "deleted" },
        change: { action: "role delete", role: name },
      };
    default:
      throw new UsageError(`"${action}" is none of list, show, set, delete; see stele role --help`);
  }
}

async function listStored(keys: ApiKeys): Promise<readonly StoredRole[]> {
  return (await keys.readRoles(0))?.roles ?? [];
}

function list(stored: readonly StoredRole[], config: Config): CommandDone {
  const own = rolesOf(config);
  const result = [
    ...[...own].map(([name, rules]) => ({ name, source: "config", rules })),
    ...stored.map(({ name, rules }) => ({ name, source: "store", counts: !own.has(name), ...(rules && { rules }) })),
  ];
  return { output: toLines(config, stored).join(""), result };
}

/** Shows only the rules, in the form that `set` takes. */
async function show(keys: ApiKeys, name: string, config: Config): Promise<CommandDone> {
  const own = rolesOf(config).get(name);
  const stored = (await listStored(keys)).find((role) => role.name === name);
  if (own === undefined && stored === undefined) throw new Error(`there is no role ${name}`);
  const rules = own ?? stored?.rules;
  if (rules === undefined) throw new Error(toDamaged(name).trimEnd());
  return { output: `${toText(rules)}\n`, result: { name, rules } };
}

async function set(
  keys: ApiKeys,
  role: { readonly name: string; readonly rules: readonly AccessRule[] },
  config: Config,
): Promise<CommandDone> {
  const { name, rules } = role;
  if (rolesOf(config).has(name)) throw new UsageError(`${name} is built in or in the config file; use another name`);
  if (!(await keys.putRole(role, rolesMax))) throw new Error(`there are ${rolesMax} roles already`);
  return {
    output: `set ${name}\n`,
    result: { name, rules },
    change: { action: "role set", role: name, rules: JSON.stringify(rules) },
  };
}

function parseRules(text: string): readonly AccessRule[] {
  const rules = toJson(text);
  const parsed = roleRulesSchema.safeParse(rules);
  if (!parsed.success) {
    throw new UsageError(parsed.error.issues.map((issue) => describeIssue(issue, rules, "rules")).join("; "));
  }
  const problems = findRuleProblems(parsed.data, "rules");
  if (problems.length > 0) throw new UsageError(problems.join("; "));
  return parsed.data;
}

function toJson(text: string): unknown {
  try {
    return decodeJson(text);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
