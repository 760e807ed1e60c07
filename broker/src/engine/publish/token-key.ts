/** An example of a token: every token has this length. */
export const tokenExample = "00000000-0000-4000-8000-000000000000";

const name = "token";

/** Key of the extension that carries the token of a publish with a key. */
export function toTokenKey(extensionPrefix: string): string {
  return `${extensionPrefix}${name}`;
}

/** Whether the key is one that {@link toTokenKey} makes of some prefix. */
export function isTokenKey(key: string): boolean {
  return key.endsWith(name);
}

/** The prefix from which {@link toTokenKey} makes the key. */
export function prefixOf(key: string): string {
  return key.slice(0, -name.length);
}
