import { curve, fromHex } from "@stele/eth/node";

/**
 * Reads a secp256k1 key written as 64 hexadecimal digits, with or without 0x.
 * @throws Error that names `source` and shows nothing of the text.
 */
export function parsePrivateKey(text: string, source: string): Uint8Array {
  const digits = text.trim().replace(/^0x/i, "");
  const key = /^[0-9a-f]{64}$/i.test(digits) ? new Uint8Array(fromHex(`0x${digits}`)) : undefined;
  if (key !== undefined && curve.isPrivateKey(key)) return key;
  throw new Error(`${source} does not hold a private key: 64 hexadecimal digits, with or without 0x before them.`);
}
