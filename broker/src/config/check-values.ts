import { quote } from "@stele/wire";
import type { Setting, SettingsOf, SettingsTable } from "./setting.ts";
import type { GivenValue } from "./sources.ts";

/** Origin of a default value. */
export const defaultOrigin = "default";

/** The valid values, and the problems of the others. */
export interface CheckedValues {
  readonly values: Readonly<Record<string, unknown>>;
  readonly origins: Readonly<Record<string, string>>;
  readonly problems: readonly string[];
}

/** Checks each given value against its row, and fills in the defaults. */
export function checkValues(table: SettingsTable, given: ReadonlyMap<string, GivenValue>): CheckedValues {
  const values: Record<string, unknown> = {};
  const origins: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, setting] of Object.entries(table)) {
    const { value, origin } = given.get(name) ?? { value: setting.default, origin: defaultOrigin };
    const checked = origin === defaultOrigin ? { value, problems: [] } : checkValue(setting, value);
    problems.push(...checked.problems.map((problem) => `${origin}: ${problem}`));
    values[name] = Array.isArray(checked.value) ? Object.freeze([...checked.value]) : checked.value;
    origins[name] = origin;
  }
  return { values, origins, problems };
}

/** Casts checked values to the type that their table describes. */
export function toSettings<Table extends SettingsTable>(_table: Table, checked: CheckedValues): SettingsOf<Table> {
  return Object.freeze({ ...checked.values }) as SettingsOf<Table>; // Each value passed the schema of its row.
}

function checkValue(setting: Setting<unknown>, value: unknown): { value: unknown; problems: readonly string[] } {
  const { schema, usesSchemaMessages, rule, secret, show } = setting;
  const { success, data, error } = schema.safeParse(value);
  if (success) return { value: data, problems: [] };
  if (usesSchemaMessages) return { value, problems: error.issues.map(({ message }) => message) };
  const shown = secret ? "the value" : quote(show === undefined ? value : show(value));
  return { value, problems: [`${shown} is not ${rule}`] };
}
