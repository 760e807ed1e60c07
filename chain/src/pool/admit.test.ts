import { Signer, signTransaction } from "@stele/eth/node";
import { expect, test } from "vitest";
import { parseTransaction } from "../blocks/transaction.ts";
import { CHAIN_ID, FEES } from "../testing/client.ts";
import { shareHiddenClass } from "../testing/hidden-class.ts";
import { admit } from "./admit.ts";

test("after 1,000 transactions, two admitted transactions have the same hidden class", () => {
  const signer = new Signer(new Uint8Array(32).fill(9));
  const fields = { chainId: CHAIN_ID, fees: { kind: "eip1559", ...FEES }, gas: 21_000, to: signer.address } as const;
  const { raw } = signTransaction({ ...fields, data: new Uint8Array(0), nonce: 0 }, signer);
  const transaction = parseTransaction(raw);
  const rules = { chainId: BigInt(CHAIN_ID), blockGasLimit: 30_000_000n, baseFeePerGas: 7n };
  for (let count = 0; count < 1_000; count += 1) admit(transaction, rules); // V8 compiles the function meanwhile.
  expect(shareHiddenClass(admit(transaction, rules), admit(transaction, rules))).toBe(true);
});
