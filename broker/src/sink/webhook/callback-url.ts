import { isBlockedPort, portOf } from "./callback-ports.ts";

/** Longest callback address, in characters. */
export const urlCharactersMax = 2048;

/** Origin and path of a request. */
export interface Place {
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
}

/** A valid callback address, or the fault in it. */
export type CallbackUrl =
  | { readonly isGood: true; readonly url: URL; readonly place: Place }
  | { readonly isGood: false; readonly fault: string; readonly hint?: string };

/** Checks the form of a callback address. The fault does not quote the address: it may contain a secret. */
export function parseCallbackUrl(text: string): CallbackUrl {
  if (text.trim() === "") return { isGood: false, fault: "it is blank" };
  // PostgreSQL cannot store text with a NUL character.
  if (text.includes("\0")) return { isGood: false, fault: "it contains a NUL character" };
  // No database can store half of a surrogate pair: the row would seem damaged.
  if (/\p{Surrogate}/u.test(text)) return { isGood: false, fault: "it is not well-formed Unicode" };
  if (text.length > urlCharactersMax) {
    return { isGood: false, fault: `${text.length} characters, at most ${urlCharactersMax}` };
  }
  if (!URL.canParse(text)) {
    return { isGood: false, fault: "it cannot be parsed", hint: "Give an absolute URL: http://host:port/path." };
  }
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return { isGood: false, fault: `the scheme is ${url.protocol.slice(0, -1)}, it must be http or https` };
  }
  if (url.username !== "" || url.password !== "") {
    const hint = "Let the receiver check the signature: subscribe with a secret.";
    return { isGood: false, fault: "it contains a user name or a password", hint };
  }
  const port = portOf(url);
  if (isBlockedPort(port)) {
    const hint = "The Fetch standard blocks the ports of mail, chat and other services.";
    return { isGood: false, fault: `callbacks may not reach port ${port}`, hint };
  }
  // Encoding can turn one character into nine.
  if (url.href.length > urlCharactersMax) {
    return { isGood: false, fault: `${url.href.length} characters when it is encoded, at most ${urlCharactersMax}` };
  }
  return { isGood: true, url, place: placeOf(url) };
}

export function placeOf({ origin, pathname, search }: URL): Place {
  return { origin, path: `${pathname}${search}` };
}

/** The host of a URL as DNS needs it: an IPv6 address without brackets. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1");
}
