// Fails if everything that a browser loads before it shows the console's first page is larger, after gzip, than the budget. Also fails if it finds fewer than
// two files in index.html: then the pattern below no longer fits the page. The pages of figures, of the chain and of proofs are loaded when they are opened.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { root } from "./prepare.mjs";

const bytesMax = 140_000;
const folder = join(root, "broker", "dist", "bundle", "console");
const page = readFileSync(join(folder, "index.html"), "utf8");
const named = [...page.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, name]) => name);
const loaded = new Set(["index.html", ...named]);
// A browser loads static imports together with the file that contains them.
for (const name of loaded) {
  if (!name.endsWith(".js")) continue;
  const text = readFileSync(join(folder, name), "utf8");
  for (const [, imported] of text.matchAll(/\b(?:from|import)\s*["']\.\/([^"']+)["']/g))
    loaded.add(`assets/${imported}`);
}
const sizes = [...loaded].map((name) => [name, gzipSync(readFileSync(join(folder, name))).length]);
const total = sizes.reduce((sum, [, size]) => sum + size, 0);
console.log(`first page of the console: ${total} bytes after gzip, of ${bytesMax}`);
if (total > bytesMax || named.length < 2) {
  console.error(sizes.map(([name, size]) => `  ${size} ${name}`).join("\n"));
  process.exitCode = 1;
}
