/** Braces, quotes and colons, and escapes, whose quote ends no string. Short matches only: a long one takes stack. */
const tokens = /[{}":]|\\./g;

/** A name that an object has twice; undefined if there is none. The text must be JSON. The gateway counts names while it measures a body, and names none. */
export function findRepeatedName(json: string): string | undefined {
  const open: Set<string>[] = [];
  let start: number | undefined; // Of the string that has begun.
  let last = "";
  for (const { 0: token, index } of json.matchAll(tokens)) {
    if (start !== undefined) {
      if (token !== '"') continue;
      last = json.slice(start, index + 1);
      start = undefined;
    } else if (token === '"') start = index;
    else if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else {
      const name = JSON.parse(last) as string; // The text before a colon is that of a string.
      const names = open.at(-1);
      if (names?.has(name) === true) return name;
      names?.add(name);
    }
  }
  return undefined;
}
