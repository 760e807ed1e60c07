import type { AccessRule } from "../../domain/access-rule.ts";

const rule = (effect: AccessRule["effect"], filter: string): AccessRule => ({
  effect,
  actions: ["open", "publish", "subscribe", "read"],
  filter,
});

/** The right to all topics under "a". */
export const allOfA = rule("allow", "a/#");

/** The roles "all of a", and "not secret", which takes the right to one of its topics away. */
export const rolesOfA: ReadonlyMap<string, readonly AccessRule[]> = new Map([
  ["all of a", [allOfA]],
  ["not secret", [rule("deny", "a/secret")]],
]);
