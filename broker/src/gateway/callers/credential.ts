const bearer = /^bearer +(\S+) *$/i;

/**
 * The credential of an `Authorization` header (RFC 6750, section 2.1). A value of another scheme is returned unchanged; the broker refuses
 * it, and its reason says how to give a key.
 */
export function readCredential(header: string | undefined): string | undefined {
  return header === undefined ? undefined : (bearer.exec(header)?.[1] ?? header);
}
