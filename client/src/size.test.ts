import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";

/** Limit for the main entry after gzip. */
const bytesMax = 10_000;

test("the main entry imports no other package and has less than 10,000 bytes after gzip", async () => {
  await using build = await rolldown({
    input: fileURLToPath(new URL("./index.ts", import.meta.url)),
    platform: "browser",
    external: (id) => !id.startsWith(".") && !id.startsWith("/"),
  });
  const { output } = await build.generate({ format: "esm", minify: true });
  const [{ code, imports }] = output;
  expect(output).toHaveLength(1);
  expect(imports).toEqual([]);
  expect(gzipSync(code).length).toBeLessThan(bytesMax);
});
