import { UsageError } from "./io.ts";

/**
 * Finds an `@` after a port, in the first segment of the path or in the query: `https://me:12/secret@host` probably means the password `12/secret`, not the
 * port 12. A path that needs an `@` can have it as %40.
 */
const misread = /^\s*https?:\/*[^/?#@]*:\d*[/?]+[^/?#@]+@/i;
/** A colon before the first `@`. Hiding more than a password costs nothing. */
const mayNamePassword = /^\s*https?:[^@]*:[^@]*@/i;

/**
 * Checks a URL that the user gives; `name` says where. Refuses `localhost:3000`: its scheme would be `localhost`. Refuses a user name and a password, because
 * no request would carry them, and shows them in no message. This includes passwords with `#`, `?` or `/`: such a character ends the host, so the text is no
 * URL, or its user name is read as the host. Does not notice `https://me:12/3/secret@host`, a password of digits with two `/`.
 * @throws UsageError unless the text is an http or https URL without user name and password.
 */
export function checkHttpUrl(text: string, name: string): void {
  const url = findHttpUrl(text);
  if (url === undefined)
    throw new UsageError(text.includes("@") ? `${name} is not an http(s) URL` : `not an http(s) URL: ${text}`);
  if (!mayHavePassword(text, url)) return;
  throw new UsageError(`${name} contains a user name or a password; write any other @ as %40`);
}

/** A URL of the user as it may be shown. Earlier versions also stored one with a password. */
export function withoutPassword(text: string): string {
  const url = findHttpUrl(text);
  const isShown = url !== undefined && !mayHavePassword(text, url) && !mayNamePassword.test(text);
  return isShown ? text : text.replace(/^(https?:\/\/)?.*@/is, "$1…@");
}

function findHttpUrl(text: string): URL | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) ? url : undefined;
}

function mayHavePassword(text: string, { username, password, hash }: URL): boolean {
  const asRead = text.replaceAll(/[\t\r\n]/g, "").replaceAll("\\", "/"); // As the URL Standard (section 4.4) reads http URLs.
  return username !== "" || password !== "" || hash.includes("@") || misread.test(asRead);
}
