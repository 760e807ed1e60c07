/** An example of a token: every token has this length. */
export const tokenExample = "00000000-0000-4000-8000-000000000000";

/** Key of the extension that carries the token of a publish with a key. */
export function toTokenKey(extensionPrefix: string): string {
  return `${extensionPrefix}token`;
}
