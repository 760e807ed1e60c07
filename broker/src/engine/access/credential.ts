/** The parts of `stele_<id>_<secret>`. */
export interface KeyCredential {
  readonly id: string;
  readonly secret: string;
}

/** The certificate that a client presented over TLS, signed by an authority that the listener trusts. */
export interface ClientCertificate {
  /** The subject alternative names with their kinds, such as `DNS:shop.example`. */
  readonly names: readonly string[];
  /** When it expires, in milliseconds since the epoch. */
  readonly validTo: number;
}

/** The id has 16 hexadecimal digits; the secret is 256 bits in Base64 for URLs. */
const keyPattern = /^stele_([0-9a-f]{16})_([0-9A-Za-z_-]{43})$/;

/** Undefined if the text is not a key. */
export function parseKeyCredential(text: string): KeyCredential | undefined {
  const [, id, secret] = keyPattern.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, secret };
}

export function formatKeyCredential({ id, secret }: KeyCredential): string {
  return `stele_${id}_${secret}`;
}

/** Compares texts of one length in a time that does not depend on where they differ. */
export function equalsInConstantTime(left: string, right: string): boolean {
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let index = 0; index < left.length; index += 1) difference |= left.charCodeAt(index) ^ right.charCodeAt(index);
  return difference === 0;
}
