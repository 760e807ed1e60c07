import { secp256k1 } from "@noble/curves/secp256k1.js";
import fc from "fast-check";
import { expect, it } from "vitest";
import { loadNativeKeccak, nobleKeccak } from "./keccak.ts";
import { loadNativeRecover, nobleRecover, type Recover } from "./recover.ts";

const nativeKeccak = loadNativeKeccak();
const nativeRecover = loadNativeRecover();
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });

/** The key in hexadecimal, or that there is none: the two say differently why. */
function outcomeOf(recover: Recover | undefined, ...args: Parameters<Recover>): string {
  try {
    return Buffer.from(recover?.(...args) ?? []).toString("hex");
  } catch {
    return "none";
  }
}

it("both addons are there on a machine that tests", () => {
  expect(nativeKeccak).toBeDefined();
  expect(nativeRecover).toBeDefined();
});

it("the addon and noble hash any parts alike", () => {
  const parts = fc.array(fc.uint8Array({ maxLength: 300, size: "max" }), { maxLength: 4 });
  fc.assert(
    fc.property(parts, (given) => {
      expect(Buffer.from(nobleKeccak(...given))).toEqual(Buffer.from(nativeKeccak?.(...given) ?? []));
    }),
  );
});

it("the addon and noble recover the key of any signature alike", () => {
  fc.assert(
    fc.property(bytes(32), bytes(32), (hash, seed) => {
      const key = secp256k1.utils.randomSecretKey(Uint8Array.from([...seed, ...seed]).subarray(0, 48));
      const signed = secp256k1.sign(hash, key, { prehash: false, format: "recovered" });
      const args = [signed.subarray(1), signed[0] ?? 0, hash] as const;
      const expected = Buffer.from(secp256k1.getPublicKey(key, false).subarray(1)).toString("hex");
      expect([outcomeOf(nativeRecover, ...args), outcomeOf(nobleRecover, ...args)]).toEqual([expected, expected]);
    }),
  );
});

it("the addon and noble answer alike where bytes may be no signature", () => {
  const edge = fc.constantFrom(0, 1, 0xff).map((byte) => new Uint8Array(32).fill(byte));
  const half = fc.oneof(bytes(32), edge);
  fc.assert(
    fc.property(fc.tuple(half, half), fc.constantFrom(0, 1), half, ([r, s], yParity, hash) => {
      const args = [Uint8Array.from([...r, ...s]), yParity, hash] as const;
      expect(outcomeOf(nobleRecover, ...args)).toBe(outcomeOf(nativeRecover, ...args));
    }),
  );
});
