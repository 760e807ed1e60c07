// The licences of the packages in the bundle: most require that each copy contains their text.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The licences of all packages that these workspaces depend on, directly or not, each once. */
export function toNotices(root, workspaces) {
  const found = new Map();
  for (const name of workspaces) {
    const folder = join(root, name);
    const manifest = readManifest(folder);
    // The console's packages are built into its files, so its manifest lists them for development only.
    const needed = name === "console" ? manifest.devDependencies : manifest.dependencies;
    collect(Object.keys(needed ?? {}), folder, found);
  }
  const notices = [...found.values()].toSorted((left, right) => left.title.localeCompare(right.title));
  return notices.map(({ title, text }) => `${title}\n${"=".repeat(title.length)}\n\n${text.trim()}\n`).join("\n\n");
}

function collect(names, from, found) {
  for (const name of names.filter((one) => !one.startsWith("@stele/") && !one.startsWith("@types/"))) {
    const folder = findFolder(name, from);
    if (folder === undefined || found.has(folder)) continue;
    const manifest = readManifest(folder);
    const title = `${name} ${manifest.version} (${manifest.license ?? "see below"})`;
    found.set(folder, { title, text: readLicence(folder) ?? `Author: ${toText(manifest.author)}` });
    collect(Object.keys(manifest.dependencies ?? {}), folder, found);
  }
}

/** Finds a package as Node does; undefined for an optional package of another platform. */
function findFolder(name, from) {
  for (let at = from; ; at = dirname(at)) {
    const folder = join(at, "node_modules", name);
    if (existsSync(join(folder, "package.json"))) return folder;
    if (at === dirname(at)) return undefined;
  }
}

function readLicence(folder) {
  const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)/i.test(name));
  return file === undefined ? undefined : readFileSync(join(folder, file), "utf8");
}

function readManifest(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}

function toText(author) {
  return typeof author === "string" ? author : (author?.name ?? "unknown");
}
