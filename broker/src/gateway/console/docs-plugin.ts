import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { docsPath } from "../shared/console-path.ts";
import { type ConsoleFile, type ConsoleFiles, indexFile, toEtag } from "./console-files.ts";
import { pageHeaders, sendFile } from "./send-file.ts";

export interface DocsOptions {
  readonly files: ConsoleFiles;
  readonly basePath: string;
}

/** Folder of the built files whose names contain a hash of their bytes. */
const hashedFolder = "assets/";
const notFoundFile = "404.html";

/** Placeholder for the address of the site in the built files; `site/base-place.mjs` has the same. */
const basePlace = "/stele-docs-base/";

/** The pages run their own scripts only, and load nothing from elsewhere. Their icons are `data:` pictures of their style sheet. */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const headers = { ...pageHeaders, "content-security-policy": contentPolicy };

const pack = promisify(gzip);

/** Serves the documentation. A page `tail` is the file `tail.html`. */
export function registerDocs(app: FastifyInstance, { files, basePath }: DocsOptions): void {
  const base = `${basePath}${docsPath}/`;
  const placed = new Map([...files].map(([path, file]) => [path, toPlaced(file, base)]));
  app.get(docsPath, (_request, reply) => reply.headers(headers).redirect(base));
  app.get<{ Params: { "*": string } }>(`${docsPath}/*`, async (request, reply) => {
    const path = request.params["*"];
    const found = placed.get(path === "" ? indexFile : path) ?? placed.get(`${path}.html`);
    if (found === undefined && path.startsWith(hashedFolder)) return reply.callNotFound();
    const file = await (found ?? placed.get(notFoundFile))?.();
    if (file === undefined) return reply.callNotFound();
    if (found === undefined) reply.status(404);
    return sendFile(request, reply, { file, isHashed: path.startsWith(hashedFolder), headers });
  });
}

/** The file with the site's address filled in, compressed at its first request: most brokers show few of the pages, if any. */
function toPlaced({ type, bytes: built }: ConsoleFile, base: string): () => Promise<ConsoleFile> {
  const bytes = Buffer.from(built.toString().replaceAll(basePlace, base));
  const etag = toEtag(bytes);
  let packed: Promise<Buffer> | undefined;
  return async () => {
    packed ??= pack(bytes);
    return { type, bytes, etag, gzip: await packed };
  };
}
