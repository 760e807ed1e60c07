// Brings a fresh clone to the point where it can run: installs the locked packages and builds the workspaces, each only when
// something has changed since the last time. Needs Node and npm, nothing else.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { hasPackages } from "./installed-packages.mjs";
import { toNpmCommand } from "./npm-command.mjs";

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");

const nodeMinimum = [20, 19];
const lockFile = join(root, "package-lock.json");
const installedLockFile = join(root, "node_modules", ".package-lock.json");
const installedStamp = join(root, "node_modules", ".stele-installed");
const builtStamp = join(root, "broker", "dist", ".stele-built");
const bundler = join(root, "tools", "bundle.mjs");
const buildable = ["eth", "wire", "contracts", "chain", "client", "console", "broker"];

/** Installs and builds if something has changed; with `rebuilds`, builds in any case. If one of them fails, prints a message and ends the process. */
export function prepare({ rebuilds = false } = {}) {
  checkNode();
  install();
  build(rebuilds);
}

/** Runs a program, by default in the root folder and with this process's input and output. Returns its exit code. */
export function run(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit", ...options });
  if (error !== undefined) console.error(`${command} could not be started: ${error.message}`);
  return status ?? 1;
}

/** As {@link run}, for npm. */
export function runNpm(args, options) {
  const { command, args: given, shell } = toNpmCommand(args);
  return run(command, given, { ...options, shell });
}

/** The script of an installed package's command. Run it with the Node.js of this process. */
export function binary(path) {
  return join(root, "node_modules", path);
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > nodeMinimum[0] || (major === nodeMinimum[0] && minor >= nodeMinimum[1])) return;
  fail(`Stele needs Node.js ${nodeMinimum.join(".")} or later; this is ${process.version}.`);
}

function install() {
  const wanted = digest([readFileSync(lockFile), process.platform, process.arch]);
  if (readStamp(installedStamp) === wanted) return;
  if (isInstalled()) {
    writeStamp(installedStamp, wanted);
    return;
  }
  console.error("Installing packages (first start, or the lock file has changed) …");
  const args = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  if (runNpm(args, { stdio: ["ignore", 2, 2] }) !== 0) fail("`npm ci` failed; see above.");
  writeStamp(installedStamp, wanted);
}

/** Whether the locked packages are installed already, for example because the user called npm. */
function isInstalled() {
  if (!existsSync(installedLockFile)) return false;
  const [wanted, installed] = [lockFile, installedLockFile].map((file) => JSON.parse(readFileSync(file, "utf8")));
  return hasPackages(wanted.packages, installed.packages ?? {}, process);
}

function build(rebuilds) {
  const wanted = digest(sources().map((file) => `${file} ${statSync(file).size} ${statSync(file).mtimeMs}`));
  if (!rebuilds && readStamp(builtStamp) === wanted) return;
  console.error("Building …");
  if (run(process.execPath, [binary("typescript-7/bin/tsc"), "-b"], { stdio: ["ignore", 2, 2] }) !== 0)
    fail("The build failed; see above.");
  if (run(process.execPath, [bundler], { stdio: ["ignore", 2, 2] }) !== 0) fail("The bundle failed; see above.");
  writeStamp(builtStamp, wanted);
}

function sources() {
  const configs = ["tsconfig.json", "tsconfig.base.json", "package-lock.json"].map((file) => join(root, file));
  const perWorkspace = buildable.flatMap((name) => [
    join(root, name, "package.json"),
    join(root, name, "tsconfig.json"),
    ...filesBelow(join(root, name, "src")),
  ]);
  const bundlers = [
    "bundle.mjs",
    "bundle-console.mjs",
    "bundle-externals.mjs",
    "bundled-never.cjs",
    "bundled-undici.mjs",
  ].map((file) => join(root, "tools", file));
  return [...configs, ...bundlers, join(root, "console", "index.html"), ...perWorkspace];
}

function filesBelow(folder) {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

function digest(parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part).update("\n");
  return hash.digest("hex");
}

function readStamp(file) {
  return existsSync(file) ? readFileSync(file, "utf8") : undefined;
}

function writeStamp(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}
