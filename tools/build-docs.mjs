// `npm run build:docs`: builds the documentation as a site, which the broker serves at `/docs`. VitePress is a hundred megabytes of packages and takes ten
// seconds, so it is neither installed nor run when only the broker is built.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { root, run, runNpm } from "./prepare.mjs";
import { stagePages } from "./docs-pages.mjs";

const site = join(root, "site");
const built = join(site, ".vitepress", "dist");
const target = join(root, "broker", "dist", "docs");
const stamp = join(site, "node_modules", ".stele-installed");

install();
writePages(stagePages(root));
rmSync(built, { recursive: true, force: true });
const vitepress = join(site, "node_modules", "vitepress", "bin", "vitepress.js");
const [command, args] = [process.execPath, [vitepress, "build", site]];
if (run(command, args, { cwd: site, stdio: ["ignore", 2, 2] }) !== 0) process.exit(1);
copyBuilt();

function install() {
  const lock = readFileSync(join(site, "package-lock.json"), "utf8");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  const flags = ["ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"];
  if (runNpm(flags, { cwd: site, stdio: ["ignore", 2, 2] }) !== 0) process.exit(1);
  writeFileSync(stamp, lock);
}

function writePages(pages) {
  const folder = join(site, ".pages");
  rmSync(folder, { recursive: true, force: true });
  for (const [name, text] of pages) write(join(folder, name), text);
}

/** Moves inline scripts into files, and drops inline styles: the content security policy allows neither. The theme's style sheet contains the styles too. */
function copyBuilt() {
  rmSync(target, { recursive: true, force: true });
  for (const name of readdirSync(built, { recursive: true })) {
    const extension = /\.(html|js|css|svg)$/.exec(name)?.[1];
    if (extension === undefined) continue;
    const text = readFileSync(join(built, name), "utf8");
    write(join(target, name), extension === "html" ? withoutInline(text) : text);
  }
}

function withoutInline(html) {
  const base = /href="(\/[^"]*?)assets\//.exec(html)?.[1] ?? "/";
  return html
    .replace(/<script id="[^"]*">(.*?)<\/script>/gs, (_tag, code) => {
      const name = `assets/head.${createHash("sha256").update(code).digest("hex").slice(0, 8)}.js`;
      write(join(target, name), `${code}\n`);
      return `<script src="${base}${name}"></script>`;
    })
    .replace(/(<[a-z][^<>]*?) style="[^"]*"/g, "$1");
}

function write(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
