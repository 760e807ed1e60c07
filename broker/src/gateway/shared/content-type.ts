/** A parsed Content-Type header. */
export interface ContentType {
  /** Type and subtype in lower case; empty when there is no header. */
  readonly mediaType: string;
  /** False when the header names a character set other than UTF-8. */
  readonly isUtf8: boolean;
}

const plainTypes = new Map<string | undefined, ContentType>([
  [undefined, { mediaType: "", isUtf8: true }],
  ["application/json", { mediaType: "application/json", isUtf8: true }],
  ["application/x-www-form-urlencoded", { mediaType: "application/x-www-form-urlencoded", isUtf8: true }],
]);

export function parseContentType(header: string | undefined): ContentType {
  const plain = plainTypes.get(header);
  if (plain !== undefined) return plain;
  const [mediaType = "", ...parameters] = (header ?? "").toLowerCase().split(";");
  const charset = parameters.map((text) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(text)?.[1]).find(Boolean);
  return { mediaType: mediaType.trim(), isUtf8: charset === undefined || /^(utf-?8|us-ascii)$/.test(charset) };
}
