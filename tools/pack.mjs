// `npm run pack -- FOLDER`: makes the tarballs that a user installs. `stele` is the broker's bundle with its command, and depends only on the packages with
// native code. `@stele/client` is for programs, and needs `@stele/wire` and `@stele/eth` for proofs. This script writes each package.json, so that no workspace
// can be published by mistake, and each tarball requires the others in exactly its own version.
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { external } from "./bundle-externals.mjs";
import { prepare, root, runNpm } from "./prepare.mjs";
import { toNotices } from "./third-party.mjs";

const libraries = ["eth", "wire", "client"];
const licenceFile = "LICENSE";

prepare();
const target = resolve(process.argv[2] ?? join(root, "packages"));
const stage = join(target, ".stage");
rmSync(stage, { recursive: true, force: true });
const folders = [stageCommand(), ...libraries.map(stageLibrary)];
const args = ["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination", target, ...folders];
process.exitCode = runNpm(args, { cwd: stage, stdio: ["ignore", "inherit", "inherit"] });
rmSync(stage, { recursive: true, force: true });
if (process.exitCode === 0) printCommands();

/** Prints absolute paths: npm reads `FOLDER/stele-0.1.0.tgz` as a repository on GitHub. Names each file: `FOLDER/*.tgz` would also match the broker. */
function printCommands() {
  const { version } = readManifest("broker");
  const tarball = (name) => `"${join(target, `${name}-${version}.tgz`)}"`;
  console.log(`\nInstall the command:\n  npm install --global ${tarball("stele")}`);
  console.log("Install the client, in the folder of your program:");
  console.log(`  npm install ${libraries.map((name) => tarball(`stele-${name}`)).join(" ")}`);
}

function stageCommand() {
  const manifest = readManifest("broker");
  const versions = { ...readManifest("eth").dependencies, ...manifest.dependencies };
  const folder = begin("stele", {
    name: "stele",
    ...describe(manifest),
    bin: { stele: "bundle/stele.js" },
    files: ["bundle", "THIRD-PARTY-NOTICES.txt"],
    dependencies: Object.fromEntries(Object.entries(versions).filter(([name]) => external.includes(name))),
  });
  cpSync(join(root, "broker", "dist", "bundle"), join(folder, "bundle"), { recursive: true });
  // `npm run pack` builds the documentation before it runs this script. The folder may be missing if the script runs alone.
  const docs = join(root, "broker", "dist", "docs");
  if (existsSync(docs)) cpSync(docs, join(folder, "bundle", "docs"), { recursive: true });
  copyFileSync(join(root, "broker", "README.md"), join(folder, "README.md"));
  const bundled = ["broker", "console", "client", "wire", "eth", "chain", "contracts"];
  writeFileSync(join(folder, "THIRD-PARTY-NOTICES.txt"), toNotices(root, bundled));
  return folder;
}

function stageLibrary(name) {
  const manifest = readManifest(name);
  const folder = begin(name, {
    name: manifest.name,
    ...describe(manifest),
    files: manifest.files,
    sideEffects: false,
    exports: manifest.exports,
    dependencies: Object.fromEntries(
      Object.entries(manifest.dependencies).map(([other, range]) => [
        other,
        other.startsWith("@stele/") ? manifest.version : range,
      ]),
    ),
  });
  for (const file of builtFiles(name)) {
    const copy = join(folder, file);
    mkdirSync(dirname(copy), { recursive: true });
    // The tarball has neither the source maps nor the sources that they name.
    const text = readFileSync(join(root, name, file), "utf8");
    writeFileSync(copy, text.replace(/^\/\/# sourceMappingURL=.*\n?/m, ""));
  }
  copyFileSync(join(root, name, "README.md"), join(folder, "README.md"));
  return folder;
}

/** The built files whose sources exist: a build does not delete the files of removed sources. */
function builtFiles(name) {
  const dist = join(root, name, "dist");
  const files = readdirSync(dist, { recursive: true })
    .map(String)
    .filter((file) => /\.(js|d\.ts)$/.test(file));
  const isOwn = (file) => existsSync(join(root, name, "src", file.replace(/\.(js|d\.ts)$/, ".ts")));
  return files.filter(isOwn).map((file) => relative(join(root, name), join(dist, file)));
}

function begin(name, manifest) {
  const folder = join(stage, name);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  if (existsSync(join(root, licenceFile))) copyFileSync(join(root, licenceFile), join(folder, licenceFile));
  return folder;
}

/** The licence is that of the repository. Without a licence file, only the owner may use the packages. */
function describe({ version, description, type, engines }) {
  const license = existsSync(join(root, licenceFile)) ? `SEE LICENSE IN ${licenceFile}` : "UNLICENSED";
  return { version, description, license, type, engines };
}

function readManifest(name) {
  return JSON.parse(readFileSync(join(root, name, "package.json"), "utf8"));
}
