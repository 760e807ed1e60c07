import { endpointName } from "../../../lib/endpoint-name.ts";

const mask = "…";
/** Shortest part of an address that counts as a key, in characters; shorter ones are words such as `v2` or `rpc`. */
const keyCharactersMin = 6;

/** An endpoint's address, and its form without secrets. */
export class EndpointAddress {
  readonly text: string;
  readonly name: string;
  /** The request headers that carry the address's user and password. */
  readonly headers: Readonly<Record<string, string>>;
  readonly #secrets: readonly string[];

  constructor(text: string) {
    this.text = text;
    this.name = endpointName(text);
    const url = text.startsWith("ipc:") ? undefined : new URL(text);
    this.headers = url === undefined ? {} : authorization(url);
    this.#secrets = url === undefined ? [] : secretsOf(url);
  }

  /** Masks the parts of the address that may be keys in a text from outside. */
  scrub(text: string): string {
    return this.#secrets.reduce((scrubbed, secret) => scrubbed.replaceAll(secret, mask), text);
  }
}

function secretsOf(url: URL): readonly string[] {
  const parts = [
    url.password,
    url.username,
    ...url.pathname.split("/"),
    ...url.searchParams.values(),
    url.hash.slice(1),
  ];
  const all = new Set(parts.flatMap((part) => [part, decode(part)]));
  return [...all].filter((part) => part.length >= keyCharactersMin).toSorted((a, b) => b.length - a.length);
}

function authorization({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === "" && password === "") return {};
  return { authorization: `Basic ${Buffer.from(`${decode(username)}:${decode(password)}`).toString("base64")}` };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
