// With --write, writes docs/configuration.md from the settings table of the built broker. Without it, fails if the page differs.
import { readFileSync, writeFileSync } from "node:fs";
import { renderReference } from "../broker/dist/config/reference.js";

const file = new URL("../docs/configuration.md", import.meta.url);
const page = renderReference();
if (process.argv.includes("--write")) writeFileSync(file, page);
else if (readFileSync(file, "utf8") !== page) {
  console.error("docs/configuration.md differs from the settings: run `node tools/generate-config-docs.mjs --write`.");
  process.exitCode = 1;
}
