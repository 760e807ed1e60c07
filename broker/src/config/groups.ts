import { quote } from "@stele/wire";
import { z } from "zod";
import { checkValues, toSettings } from "./check-values.ts";
import { decodeJson } from "./decode-json.ts";
import { type GroupEntry, groupFields } from "./group-fields.ts";
import { suggestNearest } from "./nearest-name.ts";
import type { Setting } from "./setting.ts";

/** Maximum number of groups of one broker. */
export const groupsMax = 32;

const rule = `a JSON array of 1 to ${groupsMax} groups`;

/** The `groups` setting: an array in a config file, the same as JSON text elsewhere. */
export const groupsSetting: Setting<readonly GroupEntry[] | undefined> = {
  section: "Groups",
  description: "The chains that this broker serves, each with a groupId; see [groups.md](groups.md).",
  default: undefined,
  defaultText: "one group on the embedded chain, with the id of `defaultGroup`",
  rule,
  usesSchemaMessages: true,
  schema: z.unknown().transform((value, context) => {
    const { groups, problems } = checkGroups(value);
    for (const message of problems) context.addIssue({ code: "custom", message });
    return groups;
  }),
  show: (value) => (Array.isArray(value) ? value.map(showEntry) : undefined),
  variablesOf: (value) => (Array.isArray(value) ? value.flatMap(variablesOfEntry) : []),
  decode: decodeJson,
};

/** The environment variables that contain secrets of groups. */
export function variablesOfGroups(groups: readonly Pick<GroupEntry, "signer">[]): readonly string[] {
  return groups.flatMap(variablesOfEntry);
}

interface CheckedGroups {
  readonly groups: readonly GroupEntry[];
  readonly problems: readonly string[];
}

function checkGroups(value: unknown): CheckedGroups {
  // A value that is not an array may be a mistyped address with a key in it, so it is not shown.
  if (!Array.isArray(value) || value.length === 0) return { groups: [], problems: [`the value is not ${rule}`] };
  if (value.length > groupsMax) return { groups: [], problems: [`${value.length} groups are not ${rule}`] };
  const checked = value.map((entry: unknown, index) => checkEntry(entry, `groups[${index}]`));
  return {
    groups: Object.freeze(checked.flatMap(({ groups }) => groups)),
    problems: checked.flatMap(({ problems }) => problems),
  };
}

function checkEntry(entry: unknown, path: string): CheckedGroups {
  if (!isRecord(entry)) return { groups: [], problems: [`${path} is not an object`] };
  const known = Object.keys(groupFields);
  const unknown = Object.keys(entry).filter((name) => !known.includes(name));
  const given = Object.entries(entry).map(([name, value]) => [name, { value, origin: `${path}.${name}` }] as const);
  const checked = checkValues(groupFields, new Map(given));
  const missing = (["id", "endpoints"] as const).filter((name) => entry[name] === undefined);
  return {
    groups: [toSettings(groupFields, checked)],
    problems: [
      ...unknown.map((name) => `${path}: ${quote(name)} is not a known field${suggestNearest(name, known)}`),
      ...missing.map((name) => `${path}.${name} is missing`),
      ...checked.problems,
    ],
  };
}

function showEntry(entry: unknown): unknown {
  if (!isRecord(entry)) return entry;
  const shown = Object.entries(groupFields).map(([name, field]: [string, Setting<unknown>]) => {
    const value = entry[name];
    // A source that passed its schema contains file and variable names, but no key.
    return [name, field.show === undefined || name === "signer" ? value : field.show(value)];
  });
  return Object.fromEntries(shown);
}

function variablesOfEntry(entry: unknown): readonly string[] {
  const signer = isRecord(entry) ? entry["signer"] : undefined;
  if (!isRecord(signer)) return [];
  return [signer["privateKeyEnv"], signer["passwordEnv"]].filter((name) => typeof name === "string");
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
