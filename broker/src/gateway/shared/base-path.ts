/** The base path with one leading slash and no trailing one; empty if there is none. */
export function toBasePath(text: string): string {
  const trimmed = text.replaceAll(/^\/+|\/+$/g, "");
  return trimmed === "" ? "" : `/${trimmed}`;
}

/** The path of a request target, without query or fragment. A target may begin with scheme and host (RFC 9112, section 3.2.2); an empty path is "/". */
export function toPath(target: string): string {
  return target.replace(/^https?:\/\/[^/?#]*/i, "").replace(/[?#].*$/s, "") || "/";
}

/** Whether a request target is under `/rest`, where every answer has status 200 (docs/errors.md), except answers to CloudEvents. */
export function isRestTarget(target: string, basePath: string): boolean {
  return `${toPath(target)}/`.startsWith(`${basePath}/rest/`);
}
