import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Curve, type CurveSignature, loadNativeCurve, nobleCurve } from "./curve.ts";

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const scalar = fc
  .oneof(fc.bigInt({ min: 1n, max: order - 1n }), fc.constantFrom(1n, 2n, order / 2n, order / 2n + 1n, order - 1n))
  .map(toBytes);
const native = loadNativeCurve();

function toBytes(value: bigint): Uint8Array {
  return Uint8Array.from(Buffer.from(value.toString(16).padStart(64, "0"), "hex"));
}

/** The recovered key in hexadecimal, or "none" if `curve` throws: the implementations throw different errors. */
function recoveredBy(curve: Curve | undefined, hash: Uint8Array, signed: CurveSignature): string {
  try {
    return Buffer.from(curve?.recover(hash, signed) ?? []).toString("hex");
  } catch {
    return "none";
  }
}

describe("the implementations of secp256k1", () => {
  it("the native addon loads on a machine that runs the tests", () => {
    expect(native?.implementation).toBe("native");
  });

  it("the native addon and noble give the same signature, with the lower s, recovery id and public key", () => {
    fc.assert(
      fc.property(bytes(32), scalar, (hash, key) => {
        const signed = nobleCurve.sign(hash, key);
        const expected = native?.sign(hash, key);
        expect(Buffer.from(signed.signature)).toEqual(Buffer.from(expected?.signature ?? []));
        expect(signed.recid).toBe(expected?.recid);
        expect(BigInt(`0x${Buffer.from(signed.signature.subarray(32)).toString("hex")}`)).toBeLessThanOrEqual(
          order / 2n,
        );
        expect(Buffer.from(nobleCurve.toPublicKey(key))).toEqual(Buffer.from(native?.toPublicKey(key) ?? []));
      }),
    );
  });

  it("the native addon and noble accept and refuse the same private keys", () => {
    const edges = [0n, 1n, order - 1n, order, order + 1n, 2n ** 256n - 1n].map(toBytes);
    const anyKey = fc.oneof(bytes(32), fc.constantFrom(...edges), fc.uint8Array({ maxLength: 40 }));
    fc.assert(
      fc.property(anyKey, (key) => {
        expect(nobleCurve.isPrivateKey(key)).toBe(native?.isPrivateKey(key));
      }),
    );
  });

  it("the native addon and noble recover the public key that signed", () => {
    fc.assert(
      fc.property(bytes(32), scalar, (hash, key) => {
        const signed = nobleCurve.sign(hash, key);
        const expected = Buffer.from(nobleCurve.toPublicKey(key)).toString("hex");
        expect([recoveredBy(native, hash, signed), recoveredBy(nobleCurve, hash, signed)]).toEqual([
          expected,
          expected,
        ]);
      }),
    );
  });

  it("the native addon and noble recover the same key from a random signature, or both throw", () => {
    const edge = fc.constantFrom(0, 1, 0xff).map((byte) => new Uint8Array(32).fill(byte));
    const half = fc.oneof(bytes(32), edge);
    fc.assert(
      fc.property(fc.tuple(half, half), fc.constantFrom(0, 1), half, ([r, s], recid, hash) => {
        const signed = { signature: Uint8Array.from([...r, ...s]), recid };
        expect(recoveredBy(nobleCurve, hash, signed)).toBe(recoveredBy(native, hash, signed));
      }),
    );
  });
});
