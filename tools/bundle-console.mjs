// Builds the console into the broker's bundle, which serves it. Compresses scripts and styles once here, so that the broker need not.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, gzipSync } from "node:zlib";
import { build } from "vite";

/** Files that are worth compressing. */
const compressible = /\.(?:js|css|svg)$/;

export async function bundleConsole({ root, outDir }) {
  // With another value, which a shell or a test runner may have set, the console would contain React's development build.
  process.env.NODE_ENV = "production";
  await build({
    configFile: false,
    root: join(root, "console"),
    // The build does not know the broker's base path: the page's `base` element contains it.
    base: "./",
    logLevel: "warn",
    build: {
      outDir,
      emptyOutDir: true,
      modulePreload: { polyfill: false },
      // The content security policy allows no `data:` URLs.
      assetsInlineLimit: 0,
      reportCompressedSize: false,
      rolldownOptions: {
        // `use client` directives matter only to frameworks that render on servers.
        onLog: (level, log, handle) => {
          if (log.code !== "MODULE_LEVEL_DIRECTIVE") handle(level, log);
        },
      },
    },
  });
  for (const name of readdirSync(outDir, { recursive: true })) {
    if (compressible.test(name)) compress(join(outDir, name));
  }
}

function compress(path) {
  writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: constants.Z_BEST_COMPRESSION }));
}
