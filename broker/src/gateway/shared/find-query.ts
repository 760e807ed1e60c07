/** The query of a request target, without its fragment; empty if there is none. It may contain `?` itself (RFC 3986, section 3.4). */
export function findQuery(url: string): string {
  const mark = url.indexOf("?");
  if (mark === -1) return "";
  const hash = url.indexOf("#", mark);
  return hash === -1 ? url.slice(mark + 1) : url.slice(mark + 1, hash);
}
