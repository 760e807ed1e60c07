// The pages of the documentation's site, with their links as the site needs them.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, join, posix } from "node:path";

/** Pages from outside `docs/`: their files, and their names on the site. */
const outside = {
  "README.md": "index.md",
  "ARCHITECTURE.md": "architecture.md",
  "CONTRIBUTING.md": "contributing.md",
  "CHANGELOG.md": "changelog.md",
  "SECURITY.md": "security-reports.md",
  "examples/README.md": "examples.md",
};

const isElsewhere = /^(?:[a-z]+:|#)/;
const fence = /^(?:```|~~~)[^]*?^(?:```|~~~)$/gm;
const link = /(?<!!)\[((?:[^\][]|\[[^\]]*\])*)\]\(([^()\s]+)\)/g;

/** The site's source files by name, with `sidebar.json`. A link becomes plain text if its target, such as source code, is not on the site. */
export function stagePages(root) {
  const read = (file) => readFileSync(join(root, file), "utf8");
  const own = readdirSync(join(root, "docs")).filter((name) => extname(name) === ".md");
  const places = new Map([
    ...Object.entries(outside).filter(([file]) => existsSync(join(root, file))),
    ...own.map((name) => [`docs/${name}`, name]),
  ]);
  const pages = new Map();
  for (const [file, place] of places) {
    const shown = (target) => showFile({ root, target, places, pages });
    pages.set(place, toPage(read(file), { file, place, shown }));
  }
  pages.set("sidebar.json", JSON.stringify(toSidebar(read("README.md"), places, pages)));
  return pages;
}

function toPage(text, { file, place, shown }) {
  const parts = [];
  let at = 0;
  const toLink = (label, target) => {
    const [path, anchor] = target.split(/(?=#)/);
    const page = shown(posix.normalize(posix.join(dirname(file), path)));
    if (page === undefined) return label;
    return `[${label}](${posix.relative(dirname(place), page).replace(/^(?!\.)/, "./")}${anchor ?? ""})`;
  };
  const rewrite = (prose) =>
    prose.replace(link, (...[whole, label, target]) => (isElsewhere.test(target) ? whole : toLink(label, target)));
  for (const { 0: code, index } of text.matchAll(fence)) {
    parts.push(rewrite(text.slice(at, index)), code);
    at = index + code.length;
  }
  return [...parts, rewrite(text.slice(at))].join("");
}

/** The page that shows a file of the repository; undefined for a folder, and for a file that the site does not show. */
function showFile({ root, target, places, pages }) {
  const known = places.get(target);
  if (known !== undefined) return known;
  const path = join(root, target);
  const isShown =
    /^docs\/(?:receivers|cluster|monitoring)\//.test(target) && existsSync(path) && statSync(path).isFile();
  if (!isShown) return undefined;
  // A dash replaces the last dot, because VitePress would treat the text after the dot as the file's type.
  const page = `${target.slice("docs/".length).replace(/\.(?=[^/]*$)/, "-")}.md`;
  pages.set(page, `# ${posix.basename(target)}\n\n~~~\n${readFileSync(path, "utf8").trimEnd()}\n~~~\n`);
  return page;
}

/** The guide has the documents that the README lists, in the README's order. All other pages follow. */
function toSidebar(readme, places, pages) {
  const [, table = ""] = /^## Documentation\n([^]*?)^## /m.exec(readme) ?? [];
  const listed = [...table.matchAll(/\]\(([^)]+)\)/g)].map(([, file]) => places.get(file)).filter(Boolean);
  const others = [...pages.keys()]
    .filter((name) => name !== "index.md" && !listed.includes(name))
    .toSorted((left, right) => left.localeCompare(right));
  const toItem = (name) => ({ text: titleOf(pages.get(name), name), link: `/${name.replace(/\.md$/, "")}` });
  return { guide: [...new Set(listed)].map(toItem), others: others.map(toItem) };
}

function titleOf(text, name) {
  return /^# (.+)$/m.exec(text)?.[1] ?? name;
}
