import type { IncomingHttpHeaders } from "node:http";

/** Longest name and value of a cookie that every browser keeps, in bytes (RFC 6265bis, section 5.7). */
export const cookieBytesMax = 4096;

/**
 * `__Host-` has browsers take the cookie over TLS or from this machine alone, from no other host, and for all paths. Brokers under one origin have
 * cookies of their own: no base path has a `!`.
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
 * The credential in a session's cookie. It counts for what a script of this very origin fetches, and for nothing else: no link, form, picture, frame or
 * WebSocket, and no page of another port, host or site. Browsers send these headers wherever they take the cookie.
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
