import { describeDefault, toSections } from "./render.ts";
import { groupFields } from "./group-fields.ts";
import { environmentName, flagName, type Setting } from "./setting.ts";
import { settings } from "./settings.ts";

/** The page docs/configuration.md, generated from the settings table. */
export function renderReference(): string {
  const sections = [...toSections(settings)].map(([title, rows]) => renderSection(title, rows));
  return `${introduction}\n${sections.join("\n")}\n${renderGroupFields()}`;
}

const introduction = `# Configuration

<!-- Generated from the settings table by \`node tools/generate-config-docs.mjs --write\`; a test compares it with the code. -->

There are three ways to set each setting, in order of precedence:

1. a flag: \`--port 8081\` or \`--port=8081\`;
2. an environment variable: \`STELE_PORT=8081\`; an empty variable counts as not set;
3. a JSON file named by \`--config FILE\` or \`STELE_CONFIG\`: \`{"port": 8081}\`.

A list is an array in the file, and comma-separated in a flag or a variable; \`groups\` is JSON everywhere. The broker refuses unknown names (flags,
variables that begin with \`STELE_\`, keys of the file) and invalid values. \`--check-config\` prints the settings in effect with the origin of each,
or all problems, and exits.
`;

function renderSection(title: string, rows: readonly [string, Setting<unknown>][]): string {
  const lines = [
    `## ${title}`,
    "",
    "| Key in the file | Variable | Flag | Default | Must be | Meaning |",
    "|---|---|---|---|---|---|",
    ...rows.map(renderRow),
  ];
  return `${lines.join("\n")}\n`;
}

function renderGroupFields(): string {
  const rows = Object.entries(groupFields).map(([name, field]: [string, Setting<unknown>]) => {
    const cells = [`\`${name}\``, renderDefault(field), renderRule(field), field.description];
    return `| ${cells.join(" | ")} |`;
  });
  const head = [
    "## Fields of a group",
    "",
    groupIntroduction,
    "",
    "| Field | Default | Must be | Meaning |",
    "|---|---|---|---|",
  ];
  return `${[...head, ...rows].join("\n")}\n`;
}

const groupIntroduction = `Each entry of \`groups\` is an object with these fields; [groups.md](groups.md) has examples. A variable that an entry names may have any name,\nincluding one that begins with \`STELE_\`. On the embedded chain, only \`id\`, \`endpoints\` and the limits on transactions have an effect.`;

function renderRow([name, setting]: [string, Setting<unknown>]): string {
  const cells = [`\`${name}\``, `\`${environmentName(name)}\``, `\`${flagName(name)}\``];
  return `| ${[...cells, renderDefault(setting), renderRule(setting), setting.description].join(" | ")} |`;
}

function renderDefault(setting: Setting<unknown>): string {
  const text = describeDefault(setting);
  return setting.defaultText === undefined && text !== "empty" ? `\`${text}\`` : text;
}

function renderRule({ rule, unit }: Setting<unknown>): string {
  return unit === undefined ? rule : `${rule} (${unit})`;
}
