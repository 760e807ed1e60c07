import { findJson } from "../../../lib/find-json.ts";
import type { LogInSecrets } from "./log-in.ts";

/** A log-in that has begun, as its browser keeps it. */
export interface Flow {
  /** Name of the log-in; an answer of another provider does not count. */
  readonly name: string;
  readonly secrets: LogInSecrets;
  /** The view to open afterwards, as the browser asked; see {@link toPlace}. */
  readonly view: string;
}

export function encodeFlow({ name, secrets: { state, nonce, verifier }, view }: Flow): string {
  return Buffer.from(JSON.stringify([name, state, nonce, verifier, view])).toString("base64url");
}

/** Secrets as `openid-client` makes them: 32 random bytes. */
const secretPattern = /^[\w-]{43}$/;

/** Undefined for a text that is not a flow. */
export function decodeFlow(text: string): Flow | undefined {
  const parts = findJson(Buffer.from(text, "base64url").toString());
  if (!Array.isArray(parts) || !parts.every((part) => typeof part === "string")) return undefined;
  const [name, state, nonce, verifier, view] = parts;
  if (name === undefined || state === undefined || nonce === undefined) return undefined;
  if (verifier === undefined || view === undefined) return undefined;
  if (![state, nonce, verifier].every((secret) => secretPattern.test(secret))) return undefined;
  return { name, secrets: { state, nonce, verifier }, view };
}

/** Views to which a log-in returns; any other gives the overview. Their length is limited so that the flow fits into its cookie. */
const viewPattern = /^\/[\x21-\x7e]{0,1023}$/;

/** The view that a browser asks for, to be kept for the second half of its log-in. */
export function toView(text: string | null): string {
  return text !== null && viewPattern.test(text) ? text : "/";
}

/** The path and query of a view of the console at `consoleUrl`. A text that leads anywhere else gives the overview. */
export function toPlace(view: string, consoleUrl: string): string {
  const { pathname: root, origin } = new URL(consoleUrl);
  const text = `${consoleUrl}${toView(view)}`;
  // As a browser reads it: dots and backslashes may lead out of the console.
  const place = URL.canParse(text) ? new URL(text) : undefined;
  const isView = place?.origin === origin && place.pathname.startsWith(`${root}/`);
  return isView ? `${place.pathname}${place.search}` : `${root}/`;
}
