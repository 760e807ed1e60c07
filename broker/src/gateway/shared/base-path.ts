/** A context segment as every path begins with it: a slash first and none last; empty for none. */
export function toBasePath(text: string): string {
  const trimmed = text.replaceAll(/^\/+|\/+$/g, "");
  return trimmed === "" ? "" : `/${trimmed}`;
}

/** The path of a request target, without query or fragment. */
export function toPath(target: string): string {
  return target.replace(/[?#].*$/s, "");
}
