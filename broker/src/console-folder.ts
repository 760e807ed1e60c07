import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Where the build puts the console, relative to the bundle, the compiled modules and the sources. */
const consolePlaces = ["./console/", "./bundle/console/", "../dist/bundle/console/"];

/** Where packing and `npm run build:docs` put the documentation, relative to the bundle, the compiled modules and the sources. */
const docsPlaces = ["./docs/", "../docs/", "../dist/docs/"];

/** The folder of the built console; undefined if nobody built it. */
export function findConsoleFolder(): string | undefined {
  return findFolder(consolePlaces);
}

/** The folder of the built documentation; undefined if nobody built it. */
export function findDocsFolder(): string | undefined {
  return findFolder(docsPlaces);
}

function findFolder(places: readonly string[]): string | undefined {
  const folders = places.map((place) => fileURLToPath(new URL(place, import.meta.url)));
  return folders.find((folder) => existsSync(`${folder}index.html`));
}
