import type { IncomingHttpHeaders } from "node:http";

/** Longest name and value of a cookie that every browser keeps, in bytes (RFC 6265bis, section 5.7). */
export const cookieBytesMax = 4096;

/**
 * Name of a cookie. Its prefix `__Host-` makes browsers accept the cookie only over TLS or from localhost, only from this host, and for all paths.
 * Brokers under one origin have different cookies by their base paths, which contain no `!`.
 */
export function cookieNameOf(basePath: string, use: "session" | "flow"): string {
  return `__Host-stele_${use}${basePath.replaceAll("/", "!")}`;
}

/** The value of a cookie; undefined without it. */
export function findCookie({ cookie }: IncomingHttpHeaders, name: string): string | undefined {
  if (cookie === undefined) return undefined;
  const start = `${name}=`;
  const found = cookie.split("; ").find((pair) => pair.startsWith(start));
  return found?.slice(start.length);
}

/**
 * The credential in a session's cookie. It counts only for fetches by a script of this origin: not for a link, form, image, frame or WebSocket, nor
 * for a page of another port, host or site. Every browser that accepts the cookie sends `Sec-Fetch-*`.
 */
export function findSession(headers: IncomingHttpHeaders, name: string): string | undefined {
  const isOwnScript = headers["sec-fetch-site"] === "same-origin" && headers["sec-fetch-dest"] === "empty";
  return isOwnScript ? findCookie(headers, name) : undefined;
}

interface CookieOptions {
  readonly name: string;
  readonly value: string;
  readonly maxAgeSeconds: number;
  readonly sameSite: "Strict" | "Lax";
}

/** A `Set-Cookie` field. */
export function formatCookie({ name, value, maxAgeSeconds, sameSite }: CookieOptions): string {
  return `${name}=${value}; Max-Age=${maxAgeSeconds}; Path=/; Secure; HttpOnly; SameSite=${sameSite}`;
}
