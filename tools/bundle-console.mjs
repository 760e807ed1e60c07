// Builds the console for browsers, beside the broker's bundle, which serves it. Scripts and styles are also packed here, once, so that the broker packs nothing.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, gzipSync } from "node:zlib";
import { build } from "vite";

/** Files that are worth packing. */
const packable = /\.(?:js|css|svg)$/;

export async function bundleConsole({ root, outDir }) {
  // A shell or a test runner may have set another value, and with it the console would get React's build for developers.
  process.env.NODE_ENV = "production";
  await build({
    configFile: false,
    root: join(root, "console"),
    // The page says where it is by its `base` element: the broker's context segment is not known here.
    base: "./",
    logLevel: "warn",
    build: {
      outDir,
      emptyOutDir: true,
      modulePreload: { polyfill: false },
      // The page's policy allows no `data:` addresses.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      rolldownOptions: {
        // A mark for frameworks that render on servers; there is none here.
        onLog: (level, log, handle) => {
          if (log.code !== "MODULE_LEVEL_DIRECTIVE") handle(level, log);
        },
      },
    },
  });
  for (const name of readdirSync(outDir, { recursive: true })) {
    if (packable.test(name)) pack(join(outDir, name));
  }
}

function pack(path) {
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: constants.Z_BEST_COMPRESSION }));
}
