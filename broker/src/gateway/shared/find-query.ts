/** The query of a request target, without the fragment. Empty if the target has no query. A query may contain `?` (RFC 3986, section 3.4). */
export function findQuery(url: string): string {
  const mark = url.indexOf("?");
  if (mark === -1) return "";
  const hash = url.indexOf("#", mark);
  return hash === -1 ? url.slice(mark + 1) : url.slice(mark + 1, hash);
}
