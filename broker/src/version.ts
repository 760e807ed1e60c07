import { createRequire } from "node:module";

interface PackageFile {
  readonly version: string;
}

const packageFile = createRequire(import.meta.url)("../package.json") as PackageFile; // Our own file.

/** Version of the product. */
export const version = packageFile.version;
