import { createHash } from "node:crypto";
import { type SecretKey, type SecretKeys, toSecretKey } from "../secret-keys.ts";

/** Keys by name, newest first. */
export function keysOf(newest: string, ...older: readonly string[]): SecretKeys {
  const keys = [newest, ...older].map((name): SecretKey => toSecretKey(createHash("sha256").update(name).digest()));
  const [first] = keys;
  if (first === undefined) throw new Error("no keys");
  return { count: keys.length, newest: () => first, find: (id) => keys.find((key) => key.id === id) };
}
