import { parseTransaction, recoverTransactionAddress } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { fromInteger, toBigint, toHex } from "./bytes.ts";
import { keccak256 } from "./keccak/keccak.ts";
import { portableKeccak256 } from "./keccak/portable-keccak.ts";
import { decodeRlp } from "./rlp/decode-rlp.ts";
import { type Fees, signTransaction } from "./sign-transaction.ts";
import { Signer } from "./signature/signer.ts";

const privateKey = keccak256(Buffer.from("a key"));
const signer = new Signer(privateKey);

describe("keccak256 and Signer", () => {
  test("keccak256 hashes a view of a buffer as portableKeccak256 does", () => {
    const bytes = Buffer.alloc(1000, "stele");
    for (const length of [0, 1, 135, 136, 137, 500, 900]) {
      const view = bytes.subarray(3, 3 + length);
      expect(toHex(keccak256(view))).toBe(toHex(portableKeccak256(view)));
    }
  });

  test("a Signer has the address that viem derives from its key", () => {
    expect(signer.address).toBe(privateKeyToAddress(toHex(privateKey)).toLowerCase());
  });

  test.each([new Uint8Array(31).fill(1), new Uint8Array(32), new Uint8Array(32).fill(255)])(
    "Signer throws TypeError for a key that is too short, zero, or above the curve's order",
    (key) => {
      expect(() => new Signer(key)).toThrow(TypeError);
    },
  );
});

test("fromInteger writes no leading zeros", () => {
  expect([0, 1, 127, 128, 256, 2 ** 40].map((value) => toHex(fromInteger(value)))).toEqual([
    "0x",
    "0x01",
    "0x7f",
    "0x80",
    "0x0100",
    "0x010000000000",
  ]);
});

describe("signTransaction", () => {
  const fees: Fees[] = [
    { kind: "eip1559", maxFeePerGas: 2_000_000_000n, maxPriorityFeePerGas: 1n },
    { kind: "eip1559", maxFeePerGas: 0n, maxPriorityFeePerGas: 0n },
    { kind: "legacy", gasPrice: 7n },
    { kind: "legacy", gasPrice: 0n },
  ];
  const lengths = [0, 1, 55, 56, 255, 256, 70_000];
  test.each(fees.flatMap((fee) => lengths.map((length) => [fee, length] as const)))(
    "signTransaction signs a transaction with fees %o and %i bytes of data, which viem decodes and whose signer viem recovers",
    async (fee, length) => {
      for (const nonce of [0, 1, 128, 70_000]) {
        const data = new Uint8Array(length).fill(length === 1 ? 0x7f : 0xee);
        const to = nonce === 0 ? undefined : signer.address;
        const { raw, hash } = signTransaction({ chainId: 1337, nonce, fees: fee, gas: 90_000, to, data }, signer);
        expect(hash).toBe(toHex(portableKeccak256(raw)));
        const parsed = parseTransaction(toHex(raw));
        expect(parsed).toMatchObject({ chainId: 1337, gas: 90_000n, type: fee.kind });
        expect(parsed.nonce ?? 0).toBe(nonce);
        expect(parsed.data ?? "0x").toBe(toHex(data));
        expect(parsed.to?.toLowerCase()).toBe(to);
        if (fee.kind === "legacy") expect(parsed.gasPrice ?? 0n).toBe(fee.gasPrice);
        else expect(parsed.maxFeePerGas ?? 0n).toBe(fee.maxFeePerGas);
        const recovered = await recoverTransactionAddress({ serializedTransaction: toHex(raw) as `0x02${string}` }); // The prefix is only for viem's type.
        expect(recovered.toLowerCase()).toBe(signer.address);
      }
    },
  );
});

test("signTransaction writes the largest chain id into v of a legacy transaction", () => {
  const chainId = Number.MAX_SAFE_INTEGER;
  const fees: Fees = { kind: "legacy", gasPrice: 7n };
  const { raw } = signTransaction(
    { chainId, nonce: 0, fees, gas: 21_000, to: signer.address, data: new Uint8Array() },
    signer,
  );
  const v = decodeRlp(raw)[6] as Uint8Array; // A transaction is a list of strings.
  expect((toBigint(v) - 35n) / 2n).toBe(BigInt(chainId));
});
