import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Where the build puts the console, seen from the bundle, from the compiled modules and from the sources. */
const places = ["./console/index.html", "./bundle/console/index.html", "../dist/bundle/console/index.html"];

/** The folder of the built console; undefined where there is none. */
export function findConsoleFolder(): string | undefined {
  const files = places.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  return files.find((file) => existsSync(file))?.replace(/index\.html$/, "");
}
