import { numberToHex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { BACKENDS } from "../testing/backends.ts";
import { CHAIN_ID, FEES, PAUPER, SIGNER } from "../testing/client.ts";
import { Yardstick } from "../testing/yardstick.ts";

describe.each(BACKENDS)("refusals: $name", ({ start, hasPool }) => {
  let yardstick: Yardstick;

  beforeAll(async () => {
    yardstick = await Yardstick.create(await start());
  });
  afterAll(() => yardstick.stop());

  it.each([
    ["a used nonce", async () => ({ nonce: 0 }), /nonce too low/],
    [
      "less than the intrinsic gas",
      async () => ({ nonce: await yardstick.nextNonce(), gas: 20_999n }),
      /intrinsic gas too low/,
    ],
    [
      "a fee below the base fee",
      async () => ({ nonce: await yardstick.nextNonce(), maxFeePerGas: 1n }),
      /max fee per gas less than block base fee/,
    ],
    [
      "a tip above the fee",
      async () => ({ nonce: await yardstick.nextNonce(), maxFeePerGas: 10n, maxPriorityFeePerGas: 11n }),
      /max priority fee per gas higher than max fee per gas/,
    ],
    ["another chain", async () => ({ nonce: await yardstick.nextNonce(), chainId: 99 }), /invalid chain id for signer/],
  ])("the chain refuses %s", async (_name, changes, words) => {
    const raw = await yardstick.sign(await changes());
    const refusal = await yardstick.error("eth_sendRawTransaction", raw);
    expect(refusal).toMatchObject({ code: expect.any(Number), message: expect.stringMatching(words) });
    expect([-32000, -32003]).toContain(refusal?.code);
  });

  it("the chain refuses a sender without funds", async () => {
    const raw = await PAUPER.signTransaction({
      type: "eip1559",
      chainId: CHAIN_ID,
      nonce: 0,
      gas: 21_000n,
      to: SIGNER.address,
      ...FEES,
    });
    const refusal = await yardstick.error("eth_sendRawTransaction", raw);
    expect(refusal?.message.toLowerCase()).toMatch(/insufficient funds for gas \* price \+ value/);
    expect([-32000, -32003]).toContain(refusal?.code);
  });

  it("the chain queues a transaction behind a missing nonce, refuses its repeat, and demands a higher fee for a replacement", async () => {
    const nonce = await yardstick.nextNonce();
    const ahead = await yardstick.sign({ nonce: nonce + 1, value: 1n, gas: 21_000n });
    const hash = await yardstick.result("eth_sendRawTransaction", ahead);
    expect(await yardstick.result("eth_getTransactionReceipt", hash)).toBeNull();
    const waiting = expect.objectContaining({ hash, blockNumber: null, blockHash: null });
    expect(await yardstick.result("eth_getTransactionByHash", hash)).toEqual(hasPool ? waiting : null);
    expect((await yardstick.error("eth_sendRawTransaction", ahead))?.message).toMatch(/already (known|imported)/);
    const other = await yardstick.sign({ nonce: nonce + 1, value: 2n, gas: 21_000n });
    expect((await yardstick.error("eth_sendRawTransaction", other))?.message).toMatch(
      /replacement transaction underpriced/,
    );
    await yardstick.result("eth_sendRawTransaction", await yardstick.sign({ nonce, value: 1n, gas: 21_000n }));
    const receipt = await yardstick.client.reader.waitForTransactionReceipt({ hash, checkReplacement: false });
    expect(receipt.status).toBe("success");
    expect(await yardstick.nextNonce()).toBe(nonce + 2);
    expect(await yardstick.result("eth_getTransactionCount", SIGNER.address, "pending")).toBe(numberToHex(nonce + 2));
  });

  it("the chain refuses unknown methods and bad parameters", async () => {
    expect(await yardstick.error("eth_nonsense")).toMatchObject({ code: -32601 });
    expect(await yardstick.error("eth_getBalance", "0x1234", "latest")).toMatchObject({ code: -32602 });
    const likeHex = `0x${"\u0161".repeat(40)}`; // The lower byte of each character is an "a".
    expect(await yardstick.error("eth_getBalance", likeHex, "latest")).toMatchObject({ code: -32602 });
    expect(await yardstick.error("eth_getBalance")).toMatchObject({ code: -32602 });
    expect(await yardstick.error("eth_getBlockByNumber", "nonsense", false)).toMatchObject({ code: -32602 });
    expect(await yardstick.error("eth_call", "nonsense", "latest")).toMatchObject({ code: -32602 });
    expect(await yardstick.error("eth_getLogs", { address: "0x12" })).toMatchObject({ code: -32602 });
    const percentile = { toString: 1, valueOf: 1 }; // Converting it to a number throws.
    expect(await yardstick.error("eth_feeHistory", "0x1", "latest", [percentile])).toMatchObject({ code: -32602 });
  });
});
