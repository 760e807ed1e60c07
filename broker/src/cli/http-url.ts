import { UsageError } from "./io.ts";

/**
 * Behind a port, an `@` in the first segment of the path, or in the query: in `https://me:12/secret@host`, the beginning of a password is taken for the port.
 * A server's own path can have its `@` as %40.
 */
const misread = /^\s*https?:\/*[^/?#@]*:\d*[/?]+[^/?#@]+@/i;
/** A colon before the first `@`. Hiding more than a password costs nothing. */
const mayNamePassword = /^\s*https?:[^@]*:[^@]*@/i;

/**
 * Checks a URL that the user gives; `name` says where. `localhost:3000` is a URL too, but of the scheme `localhost`. A user name and a password are refused,
 * because no request would carry them. No message shows them: a password with `#` or `/` makes a text that is not a URL, one of another scheme, or one of the host
 * that was meant as the user name. It does not notice `https://me:12/3/secret@host`: digits
 * up to a first `/`, then a second one.
 * @throws UsageError unless the text is an http or https URL.
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
