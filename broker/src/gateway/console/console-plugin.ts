import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { toPath } from "../shared/base-path.ts";
import { addVary } from "../shared/vary.ts";
import { type ConsoleFile, type ConsoleFiles, indexFile, toEtag } from "./console-files.ts";
import { consolePath } from "../shared/console-path.ts";

export interface ConsoleOptions {
  readonly files: ConsoleFiles;
  readonly basePath: string;
}

/** Where the build puts everything whose name contains its hash. */
const hashedFolder = "assets/";

/**
 * The page runs its own scripts only, calls this broker only, and appears in no frame of another page. It never turns a text into markup or script
 * either: Trusted Types refuse that.
 */
const contentPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const headers = {
  "content-security-policy": contentPolicy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

/** Serves the console's files. Every address below it that names no file is a view of the page. */
export function registerConsole(app: FastifyInstance, { files, basePath }: ConsoleOptions): void {
  const index = toIndex(files, basePath);
  app.get(consolePath, (request, reply) => {
    const query = (request.raw.url ?? "").slice(toPath(request.raw.url ?? "").length);
    return reply.headers(headers).redirect(`${basePath}${consolePath}/${query}`);
  });
  app.get<{ Params: { "*": string } }>(`${consolePath}/*`, (request, reply) => {
    const path = request.params["*"];
    const file = path === indexFile ? undefined : files.get(path);
    if (file !== undefined) return sendFile(request, reply, { file, isHashed: path.startsWith(hashedFolder) });
    if (path.startsWith(hashedFolder)) return reply.callNotFound();
    return sendFile(request, reply, { file: index, isHashed: false });
  });
}

/** The build leaves a place for the address below which the page finds its files and the broker. */
function toIndex(files: ConsoleFiles, basePath: string): ConsoleFile {
  const built = files.get(indexFile)?.bytes.toString() ?? "";
  const bytes = Buffer.from(built.replace('<base href="/console/"', `<base href="${basePath}${consolePath}/"`));
  return { type: "text/html; charset=utf-8", bytes, gzip: undefined, etag: toEtag(bytes) };
}

interface Sent {
  readonly file: ConsoleFile;
  /** Whether its name changes with its bytes. */
  readonly isHashed: boolean;
}

function sendFile(request: FastifyRequest, reply: FastifyReply, { file, isHashed }: Sent): FastifyReply {
  reply.headers(headers).headers({
    etag: file.etag,
    "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
  });
  if (request.headers["if-none-match"] === file.etag) return reply.status(304).send();
  reply.header("content-type", file.type);
  if (file.gzip === undefined) return reply.send(file.bytes);
  addVary(reply, "accept-encoding");
  return acceptsGzip(request.headers["accept-encoding"])
    ? reply.header("content-encoding", "gzip").send(file.gzip)
    : reply.send(file.bytes);
}

/** As browsers and proxies write it; whoever writes it otherwise gets the plain file. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  return /(?:^|,)\s*gzip\s*(?:,|$|;\s*q=(?:1|0\.[0-9]*[1-9]))/i.test(String(header ?? ""));
}
