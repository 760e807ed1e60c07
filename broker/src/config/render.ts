import type { CheckedValues } from "./check-values.ts";
import { flagName, type Setting, type SettingsTable } from "./setting.ts";

const indent = "  ";
const secretMask = "(secret)";

/** The text of `--help`. */
export function renderHelp(table: SettingsTable): string {
  const lines = [
    "Usage: stele start [flags]            stele --help lists the other commands",
    "",
    "An event broker that commits every event to a blockchain.",
    "",
    `${indent}--config FILE     read settings from a JSON file`,
    `${indent}--check-config    print the settings in effect, or the problems in them, and exit`,
    `${indent}--help, -h        print this text`,
    `${indent}--version         print the version`,
    "",
    "Examples:",
    `${indent}stele start`,
    `${indent}stele start --port 9090 --data-dir /var/lib/stele`,
    `${indent}stele start --config stele.json --check-config`,
  ];
  for (const [section, rows] of toSections(table)) {
    lines.push("", `${section}:`);
    for (const [name, setting] of rows) lines.push(...helpLines(name, setting));
  }
  return `${lines.join("\n")}\n`;
}

/** The text of `--check-config`: each setting, its value as JSON and its origin. It contains no secret. */
export function renderEffective(table: SettingsTable, checked: CheckedValues): string {
  const lines = Object.entries(table).map(([name, setting]) => {
    const shown = setting.show === undefined ? checked.values[name] : setting.show(checked.values[name]);
    const value = setting.secret ? secretMask : (JSON.stringify(shown) ?? "(derived)");
    return `${name} = ${value}  (${checked.origins[name]})`;
  });
  return `${lines.join("\n")}\n`;
}

/** The rows of a table by section, in the order in which sections first appear. */
export function toSections(table: SettingsTable): ReadonlyMap<string, readonly [string, Setting<unknown>][]> {
  const sections = new Map<string, [string, Setting<unknown>][]>();
  for (const [name, setting] of Object.entries(table)) {
    const rows = sections.get(setting.section) ?? [];
    rows.push([name, setting]);
    sections.set(setting.section, rows);
  }
  return sections;
}

/** A default in readable form. */
export function describeDefault(setting: Setting<unknown>): string {
  if (setting.defaultText !== undefined) return setting.defaultText;
  const text = Array.isArray(setting.default) ? setting.default.join(",") : String(setting.default);
  return text === "" ? "empty" : text;
}

function helpLines(name: string, setting: Setting<unknown>): readonly string[] {
  const unit = setting.unit === undefined ? "" : ` ${setting.unit}`;
  const facts = `default ${describeDefault(setting)}${setting.defaultText === undefined ? unit : ""}`;
  return [`${indent}${flagName(name)} (${facts})`, `${indent}${indent}${indent}${toPlainText(setting.description)}`];
}

/** Replaces a link whose text is a file name by the path of that page, and any other link by its text. */
function toPlainText(description: string): string {
  return description.replaceAll(/\[([^\]]*\.md)\]\([^)]*\)/g, "docs/$1").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1");
}
