// The site that the broker serves at `/docs`, from the pages that tools/build-docs.mjs puts here.
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
  // The page's policy allows no inline scripts: what VitePress knows of the pages is in a file.
  metaChunk: true,
  // A switch without transitions would add an inline style.
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

/** Colours would be inline styles, which the page's policy refuses. */
function toPlainCode(code) {
  const text = code.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return `<pre v-pre><code>${text}</code></pre>`;
}

/** Columns are aligned by classes for the same reason. */
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
