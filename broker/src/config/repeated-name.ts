/** The ends of objects in a JSON text, and its strings, each with the colon behind it if it names a member. */
const tokens = /[{}]|("(?:[^"\\]|\\.)*")(\s*:)?/g;

/**
 * A name that an object has twice; undefined if there is none. The text must be JSON. `JSON.parse` keeps the last of such members without a word: a role could
 * lose its rules that deny.
 */
export function findRepeatedName(json: string): string | undefined {
  const open: Set<string>[] = [];
  for (const [token, text = "", colon] of json.matchAll(tokens)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (colon !== undefined) {
      const name = JSON.parse(text) as string; // The text is that of a string.
      const names = open.at(-1);
      if (names?.has(name) === true) return name;
      names?.add(name);
    }
  }
  return undefined;
}
