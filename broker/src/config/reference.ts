import { describeDefault, toSections } from "./render.ts";
import { environmentName, flagName, type Setting } from "./setting.ts";
import { settings } from "./settings.ts";

/** The page docs/configuration.md, written from the settings table. */
export function renderReference(): string {
  const sections = [...toSections(settings)].map(([title, rows]) => renderSection(title, rows));
  return `${introduction}\n${sections.join("\n")}`;
}

const introduction = `# Configuration

<!-- Written from the settings table by \`node tools/generate-config-docs.mjs --write\`; a test holds it to the code. -->

Every setting can be given in three ways. The first that gives it wins:

1. a flag: \`--port 8081\` or \`--port=8081\`;
2. an environment variable: \`STELE_PORT=8081\`; an empty variable counts as left out;
3. a JSON file named by \`--config FILE\` or \`STELE_CONFIG\`: \`{"port": 8081}\`.

A list is an array in the file, and entries parted by commas in a flag or a variable. A name that is not known (a flag, a variable
that begins with \`STELE_\`, a key of the file) is refused, and so is a value outside its bounds. \`--check-config\` prints the settings in
effect and where each is from, or everything that is wrong with them, and ends.
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

function renderRow([name, setting]: [string, Setting<unknown>]): string {
  const given = setting.defaultText ?? `\`${describeDefault(setting)}\``;
  const fallback = describeDefault(setting) === "empty" ? "empty" : given;
  const rule = setting.unit === undefined ? setting.rule : `${setting.rule} (${setting.unit})`;
  const cells = [`\`${name}\``, `\`${environmentName(name)}\``, `\`${flagName(name)}\``, fallback, rule];
  return `| ${[...cells, setting.description].join(" | ")} |`;
}
