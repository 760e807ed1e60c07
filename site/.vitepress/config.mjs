// Settings of the site that the broker serves at `/docs`. tools/build-docs.mjs writes its pages into `.pages`.
import { readFileSync } from "node:fs";
import { basePlace } from "../base-place.mjs";

const { guide, others } = JSON.parse(readFileSync(new URL("../.pages/sidebar.json", import.meta.url), "utf8"));

export default {
  srcDir: ".pages",
  cacheDir: ".cache",
  base: basePlace,
  lang: "en",
  title: "Stele",
  description: "Documentation of the Stele event broker",
  // The page's policy allows no inline scripts, so VitePress writes the pages' metadata into a file.
  metaChunk: true,
  // By default, VitePress disables transitions through an inline style, which the policy refuses.
  appearance: { disableTransition: false },
  markdown: { highlight: toPlainCode, config: useAlignClasses },
  themeConfig: {
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: [
      { text: "Guide", items: guide },
      { text: "More", collapsed: true, items: others },
    ],
  },
};

/** Shows code without colours: colours would be inline styles, which the page's policy refuses. */
function toPlainCode(code) {
  const text = code.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<pre v-pre><code>${text}</code></pre>`;
}

/** Aligns columns by classes, because the page's policy refuses inline styles. */
function useAlignClasses(md) {
  md.core.ruler.push("align-classes", ({ tokens }) => {
    for (const token of tokens) {
      const align = /^text-align:(\w+)$/.exec(token.attrGet("style") ?? "")?.[1];
      if (align === undefined) continue;
      token.attrs = token.attrs.filter(([name]) => name !== "style");
      token.attrJoin("class", `align-${align}`);
    }
  });
}
