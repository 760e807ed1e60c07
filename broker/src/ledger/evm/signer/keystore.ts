import { createDecipheriv, pbkdf2, scrypt, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { scryptAsync } from "@noble/hashes/scrypt.js";
import { keccak256 } from "@stele/eth/node";
import { z } from "zod";
import { findJson } from "../../../lib/find-json.ts";

/** Upper bound on the memory of a key derivation, in bytes: four times geth's strongest setting. */
const scryptBytesMax = 1_073_741_824;
/** Upper bound on the rounds of PBKDF2. */
const pbkdf2RoundsMax = 16_777_216;
const keyBytes = 32;
const ivBytes = 16;
/** Margin in the memory limit, since OpenSSL counts more than the table and the lanes. */
const scryptSpareBlocks = 64;

const hexBytes = z
  .string()
  .regex(/^(0x)?([0-9a-fA-F]{2})+$/)
  .transform((text) => Buffer.from(text.replace(/^0x/, ""), "hex"));
const derivation = z.union([
  z.object({
    kdf: z.literal("scrypt"),
    kdfparams: z.object({
      dklen: z.literal(keyBytes),
      n: z.int().min(2).refine(isPowerOfTwo),
      r: z.int().min(1),
      p: z.int().min(1).max(64),
      salt: hexBytes,
    }),
  }),
  z.object({
    kdf: z.literal("pbkdf2"),
    kdfparams: z.object({
      dklen: z.literal(keyBytes),
      c: z.int().min(1).max(pbkdf2RoundsMax),
      prf: z.literal("hmac-sha256"),
      salt: hexBytes,
    }),
  }),
]);
const crypto = z
  .object({
    cipher: z.literal("aes-128-ctr"),
    cipherparams: z.object({ iv: hexBytes.refine(({ length }) => length === ivBytes) }),
    ciphertext: hexBytes,
    mac: hexBytes,
  })
  .and(derivation);
const keystore = z.object({ version: z.literal(3), crypto }).or(
  z.object({ version: z.literal(3), Crypto: crypto }).transform(({ version, Crypto }) => ({ version, crypto: Crypto })), // The spelling of the first clients.
);

type Derivation = z.infer<typeof derivation>;

/**
 * Decrypts a private key from a JSON keystore (Web3 Secret Storage, version 3; the files of geth and others).
 * @throws Error that names `source`, and shows neither password nor key.
 */
export async function openKeystore(
  text: string,
  { password, source }: { readonly password: string; readonly source: string },
): Promise<Uint8Array> {
  const { crypto } = parseKeystore(text, source);
  const derived = await derive(crypto, password, source);
  const mac = keccak256(Buffer.concat([derived.subarray(16, 32), crypto.ciphertext]));
  if (mac.length !== crypto.mac.length || !timingSafeEqual(mac, crypto.mac)) {
    throw new Error(`The password does not open the keystore ${source}.`);
  }
  const decipher = createDecipheriv("aes-128-ctr", derived.subarray(0, 16), crypto.cipherparams.iv);
  return new Uint8Array(Buffer.concat([decipher.update(crypto.ciphertext), decipher.final()]));
}

function isPowerOfTwo(value: number): boolean {
  return Number.isInteger(Math.log2(value));
}

function parseKeystore(text: string, source: string): z.infer<typeof keystore> {
  const { data } = keystore.safeParse(findJson(text));
  if (data !== undefined) return data;
  throw new Error(
    `${source} is not a keystore that can be read: JSON of version 3, with aes-128-ctr and scrypt or pbkdf2.`,
  );
}

async function derive({ kdf, kdfparams }: Derivation, password: string, source: string): Promise<Buffer> {
  if (kdf === "pbkdf2") return promisify(pbkdf2)(password, kdfparams.salt, kdfparams.c, keyBytes, "sha256");
  const { n: N, r, p, salt } = kdfparams;
  const maxmem = 128 * r * (N + p + scryptSpareBlocks);
  if (maxmem > scryptBytesMax) {
    throw new Error(`The keystore ${source} asks for more than ${scryptBytesMax} bytes of memory.`);
  }
  // OpenSSL refuses `n` beyond the bound of RFC 7914, section 6, which keystores with `r` 1 exceed. Use another implementation for them.
  if (N >= 2 ** (16 * r)) return Buffer.from(await scryptAsync(password, salt, { N, r, p, dkLen: keyBytes, maxmem }));
  return new Promise((resolve, reject) => {
    scrypt(password, salt, keyBytes, { N, r, p, maxmem }, (error, key) =>
      error === null ? resolve(key) : reject(error),
    );
  });
}
