const bearer = /^bearer +(\S+) *$/i;

/** The credential of an `Authorization` header (RFC 6750, section 2.1). One of another scheme is given as it is, and is none of the broker's. */
export function readCredential(header: string | undefined): string | undefined {
  return header === undefined ? undefined : (bearer.exec(header)?.[1] ?? header);
}
