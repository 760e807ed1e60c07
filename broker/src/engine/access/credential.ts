/** The parts of `stele_<id>_<secret>`. */
export interface KeyCredential {
  readonly id: string;
  readonly secret: string;
}

/** What a client showed when it connected over TLS. An authority that the listener trusts signed it. */
export interface ClientCertificate {
  /** Its alternative names with their kinds, such as `DNS:shop.example`. */
  readonly names: readonly string[];
  /** Milliseconds since the epoch. */
  readonly validTo: number;
}

/** 16 hexadecimal digits, and 256 bits in Base64 for URLs. */
const keyPattern = /^stele_([0-9a-f]{16})_([0-9A-Za-z_-]{43})$/;

/** Undefined for a text that is no key. */
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
