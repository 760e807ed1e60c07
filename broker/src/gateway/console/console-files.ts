import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, sep } from "node:path";

/** One file of the built console. */
export interface ConsoleFile {
  readonly type: string;
  readonly bytes: Buffer;
  /** The bytes after gzip, made by the build; undefined if gzip saves little. */
  readonly gzip: Buffer | undefined;
  readonly etag: string;
}

/** Each file by its path below the console's address: `assets/index-Bq3.js`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

export const indexFile = "index.html";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

/**
 * Reads the built console, less than a megabyte, or the built documentation into memory. Requests look up their paths in this map, so no path leads
 * out of the folder, and a page never mixes files of two versions. Undefined if nothing was built.
 */
export function readConsoleFiles(folder: string): ConsoleFiles | undefined {
  if (!existsSync(join(folder, indexFile))) return undefined;
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => extname(name) in types);
  return new Map(names.map((name) => [name.replaceAll(sep, "/"), readFile(join(folder, name))]));
}

function readFile(path: string): ConsoleFile {
  const bytes = readFileSync(path);
  const packed = `${path}.gz`;
  return {
    type: types[extname(path)] ?? "",
    bytes,
    gzip: existsSync(packed) ? readFileSync(packed) : undefined,
    etag: toEtag(bytes),
  };
}

/** A strong validator (RFC 9110, section 8.8.3). */
export function toEtag(bytes: Buffer): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
}
