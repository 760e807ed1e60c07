/** Braces, quotes, colons, and escapes, since an escaped quote ends no string. All matches are short: a long one takes stack. */
const tokens = /[{}":]|\\./g;

/** A name that an object has twice; undefined if there is none. The text must be JSON. The gateway only counts names, so it cannot say which one is repeated. */
export function findRepeatedName(json: string): string | undefined {
  const open: Set<string>[] = [];
  let start: number | undefined; // Start of the string that the loop is in.
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
      const name = JSON.parse(last) as string; // What precedes a colon is a string.
      const names = open.at(-1);
      if (names?.has(name) === true) return name;
      names?.add(name);
    }
  }
  return undefined;
}
