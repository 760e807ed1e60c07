// `node tools/limits.mjs --write` writes docs/limits.md from the code: every constant with the name of a limit, and the engine's limits, each with the comment
// above it. Without --write, fails if the page differs. Always fails if a limit has no comment.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { root } from "./prepare.mjs";

const page = join(root, "docs", "limits.md");
const folders = ["eth/src", "wire/src", "contracts/src", "chain/src", "client/src", "console/src", "broker/src"];
const constant =
  /(?:^\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n|^\/\/ (.*)\n)?^(?:export )?const (\w*(?:Max|Timeout\w*Ms|_MAX|_MAX_DEFAULT|LIMIT_DEFAULT)) = ([^;]+);/gm;
const engineFile = "broker/src/engine/limits.ts";

function limits() {
  const files = folders.flatMap((folder) => filesBelow(join(root, folder)));
  return files.flatMap((file) => limitsIn(relative(root, file), readFileSync(file, "utf8")));
}

function filesBelow(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const files = entries.filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name));
  const own = files.filter(
    (entry) => !/\.(test|contract|generated)\.ts$/.test(entry.name) && !/testing/.test(entry.parentPath),
  );
  return own.map((entry) => join(entry.parentPath, entry.name)).toSorted();
}

function limitsIn(file, text) {
  if (file === engineFile) return engineLimits(file, text);
  return [...text.matchAll(constant)].map(([, block, line, name, value]) => ({
    file,
    name,
    value,
    meaning: sentence(block ?? line),
  }));
}

/** The engine's limits are the fields of one interface, with their defaults in one object. */
function engineLimits(file, text) {
  const fields = text.matchAll(/(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?readonly (\w+): number;/g);
  return [...fields].map(([, comment, name]) => ({
    file,
    name,
    value: new RegExp(`^  ${name}: ([^,]+),$`, "m").exec(text)?.[1] ?? "",
    meaning: sentence(comment),
  }));
}

function sentence(comment) {
  return (comment ?? "")
    .replaceAll(/\s*\n\s*\*\s?/g, " ")
    .replaceAll("|", "\\|")
    .trim();
}

function render(rows) {
  const head = `<!-- Written by \`node tools/limits.mjs --write\` from the code. -->
# Limits

Every queue, buffer, batch, loop and retry has a named limit. Below are the values in the code. If a setting sets a limit, the value of the setting counts instead; [configuration.md](configuration.md) has the defaults. Most names end in \`Max\`, with the unit before it, as in
\`contentBytesMax\`. Limits on memory and concurrency hold for each node, limits on stored data for the whole store. [access.md](access.md#quotas) says which quotas of tenants and principals hold for each node, and which for all nodes together.
`;
  const files = [...new Set(rows.map((row) => row.file))];
  const tables = files.map((file) => {
    const own = rows.filter((row) => row.file === file);
    const lines = own.map((row) => `| \`${row.name}\` | \`${row.value}\` | ${row.meaning} |`);
    return `\n## ${file}\n\n| Limit | Value | Meaning |\n|---|---|---|\n${lines.join("\n")}\n`;
  });
  return head + tables.join("");
}

const rows = limits();
const bare = rows.filter((row) => row.meaning === "" || row.value === "");
for (const row of bare)
  console.error(`${row.file}: ${row.name} needs a value, and a comment that says what it limits.`);
const text = render(rows);
if (process.argv.includes("--write")) writeFileSync(page, text);
else if (readFileSync(page, "utf8") !== text) {
  console.error("docs/limits.md differs from the code: run `node tools/limits.mjs --write`.");
  process.exitCode = 1;
}
if (bare.length > 0) process.exitCode = 1;
