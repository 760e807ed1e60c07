import type { FastifyReply, FastifyRequest } from "fastify";
import { addVary } from "../shared/vary.ts";
import type { ConsoleFile } from "./console-files.ts";

export interface Sent {
  readonly file: ConsoleFile;
  /** Whether the file's name contains a hash of its bytes. */
  readonly isHashed: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** Headers of every page besides its content policy: no other site may frame or read the page. */
export const pageHeaders = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

export function sendFile(request: FastifyRequest, reply: FastifyReply, sent: Sent): FastifyReply {
  const { file, isHashed, headers } = sent;
  reply.headers(headers).headers({
    etag: file.etag,
    "cache-control": isHashed ? "public, max-age=31536000, immutable" : "no-cache",
  });
  if (isKept(request.headers["if-none-match"], file)) return reply.status(304).send();
  reply.header("content-type", file.type);
  if (file.gzip === undefined) return reply.send(file.bytes);
  addVary(reply, "accept-encoding");
  return acceptsGzip(request.headers["accept-encoding"])
    ? reply.header("content-encoding", "gzip").send(file.gzip)
    : reply.send(file.bytes);
}

/**
 * Whether an `If-None-Match` names the file's tag (RFC 9110, section 13.1.2). The comparison is weak: a proxy that compresses the file makes the tag that the
 * browser gets weak.
 */
function isKept(header: string | undefined, { etag }: ConsoleFile): boolean {
  const tags = (header ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

/** Whether an `Accept-Encoding` names `gzip`, with or without a quality, as browsers and proxies write it. Another header, such as `*`, gets the plain file. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  return /(?:^|,)\s*gzip\s*(?:,|$|;\s*q=(?:1|0\.[0-9]*[1-9]))/i.test(String(header ?? ""));
}
