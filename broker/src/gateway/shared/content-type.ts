import type { IncomingHttpHeaders } from "node:http";
import { quote } from "@stele/wire";

/** A parsed Content-Type header. */
export interface ContentType {
  /** Type and subtype in lower case; empty when there is no header. */
  readonly mediaType: string;
  /** False when the header names a character set other than UTF-8 and its part US-ASCII. */
  readonly isUtf8: boolean;
}

const plainTypes = new Map<string | undefined, ContentType>([
  [undefined, { mediaType: "", isUtf8: true }],
  ["application/json", { mediaType: "application/json", isUtf8: true }],
  ["application/x-www-form-urlencoded", { mediaType: "application/x-www-form-urlencoded", isUtf8: true }],
]);

/** The pattern must not match white space at its end: the same space could then match in two places, and a header of 30,000 spaces would take a second. */
const charsetPattern = /^charset\s*=\s*"?([^"\s]*)"?$/;

export function parseContentType(header: string | undefined): ContentType {
  const plain = plainTypes.get(header);
  if (plain !== undefined) return plain;
  const [mediaType = "", ...parameters] = (header ?? "").toLowerCase().split(";");
  const charset = parameters.map((text) => charsetPattern.exec(text.trim())?.[1]).find(Boolean);
  return { mediaType: mediaType.trim(), isUtf8: charset === undefined || /^(utf-?8|us-ascii)$/.test(charset) };
}

/** Returns the reason to refuse a text by its headers; undefined if it may be read. */
export function findEncodingRefusal(headers: IncomingHttpHeaders): string | undefined {
  const refusal = findCodingRefusal(headers);
  if (refusal !== undefined) return refusal;
  return parseContentType(headers["content-type"]).isUtf8 ? undefined : "the body's character set is not UTF-8";
}

/** Returns the reason to refuse a body that is not read as text. The broker unpacks no compressed body. */
export function findCodingRefusal({ "content-encoding": coding }: IncomingHttpHeaders): string | undefined {
  if (coding === undefined || coding.trim().toLowerCase() === "identity") return undefined;
  return `content encoding ${quote(coding)} is not supported; send the body uncompressed`;
}
