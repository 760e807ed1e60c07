import { keccak256, numberToHex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  BlockAnswer,
  FeeHistoryAnswer,
  FullBlockAnswer,
  TransactionAnswer,
  ProofAnswer,
  ReceiptAnswer,
} from "../testing/answers.ts";
import { BACKENDS } from "../testing/backends.ts";
import { CHAIN_ID, FEES, PAUPER, SIGNER } from "../testing/client.ts";
import { encodeCall, GAS, NOWHERE, STORED_TOPIC, Yardstick } from "../testing/yardstick.ts";

describe.each(BACKENDS)("blocks, transactions, state and fees: $name", ({ start }) => {
  let yardstick: Yardstick;

  beforeAll(async () => {
    yardstick = await Yardstick.create(await start());
  });
  afterAll(() => yardstick.stop());

  it("the chain reports its client name and chain", async () => {
    expect(await yardstick.result("eth_chainId")).toBe(numberToHex(CHAIN_ID));
    expect(await yardstick.result("net_version")).toBe(String(CHAIN_ID));
    expect(await yardstick.result("web3_clientVersion")).toMatch(/\/v?\d/);
    expect(await yardstick.result("web3_sha3", "0x68656c6c6f")).toBe(keccak256("0x68656c6c6f"));
    expect(await yardstick.result("eth_syncing")).toBe(false);
    expect(await yardstick.result("net_listening")).toBe(true);
  });

  it("the chain returns a receipt with logs, gas and indexes", async () => {
    const receipt = await yardstick.resultAs<ReceiptAnswer>("eth_getTransactionReceipt", yardstick.stored);
    expect(receipt).toMatchObject({
      status: "0x1",
      type: "0x2",
      transactionHash: yardstick.stored,
      transactionIndex: "0x0",
      blockNumber: "0x2",
      from: SIGNER.address.toLowerCase(),
      to: yardstick.contract,
      contractAddress: null,
      effectiveGasPrice: "0x7",
      gasUsed: receipt.cumulativeGasUsed,
    });
    expect(receipt.gasUsed).toBe("0x10e32");
    expect(receipt.logs).toHaveLength(1);
    expect(receipt.logs[0]).toMatchObject({
      address: yardstick.contract,
      topics: [
        STORED_TOPIC,
        numberToHex(5, { size: 32 }),
        `0x${SIGNER.address.slice(2).toLowerCase().padStart(64, "0")}`,
      ],
      data: `0x${"20".padStart(64, "0")}${"4".padStart(64, "0")}${"deadbeef".padEnd(64, "0")}`,
      logIndex: "0x0",
      removed: false,
      transactionHash: yardstick.stored,
    });
    expect(receipt.logsBloom).toHaveLength(514);
    expect(await yardstick.result("eth_getTransactionReceipt", NOWHERE)).toBeNull();
  });

  it("the chain returns a transaction by hash, and by block and index", async () => {
    const transaction = await yardstick.resultAs<TransactionAnswer>("eth_getTransactionByHash", yardstick.stored);
    expect(transaction).toMatchObject({
      hash: yardstick.stored,
      type: "0x2",
      nonce: "0x1",
      blockNumber: "0x2",
      transactionIndex: "0x0",
      from: SIGNER.address.toLowerCase(),
      to: yardstick.contract,
      value: "0x0",
      gas: numberToHex(GAS),
      gasPrice: "0x7",
      maxFeePerGas: numberToHex(FEES.maxFeePerGas),
      maxPriorityFeePerGas: "0x0",
      chainId: numberToHex(CHAIN_ID),
      accessList: [],
      input: encodeCall({ functionName: "store", args: [5n, 1234n, "0xdeadbeef"] }),
    });
    const byNumber = await yardstick.resultAs<TransactionAnswer>(
      "eth_getTransactionByBlockNumberAndIndex",
      "0x2",
      "0x0",
    );
    const byHash = await yardstick.resultAs<TransactionAnswer>(
      "eth_getTransactionByBlockHashAndIndex",
      transaction.blockHash,
      "0x0",
    );
    expect(byNumber.hash).toBe(yardstick.stored);
    expect(byHash.hash).toBe(yardstick.stored);
    expect(await yardstick.result("eth_getTransactionByBlockNumberAndIndex", "0x2", "0x1")).toBeNull();
    expect(await yardstick.result("eth_getTransactionByHash", NOWHERE)).toBeNull();
  });

  it("the chain returns blocks by number, tag and hash", async () => {
    const block = await yardstick.resultAs<BlockAnswer>("eth_getBlockByNumber", "0x2", false);
    expect(block).toMatchObject({
      number: "0x2",
      transactions: [yardstick.stored],
      uncles: [],
      baseFeePerGas: "0x7",
      difficulty: "0x0",
    });
    const full = await yardstick.resultAs<FullBlockAnswer>("eth_getBlockByHash", block.hash, true);
    expect(full.transactions[0]?.hash).toBe(yardstick.stored);
    expect(full.stateRoot).toBe(block.stateRoot);
    expect((await yardstick.resultAs<BlockAnswer>("eth_getBlockByNumber", "earliest", false)).number).toBe("0x0");
    const latest = await yardstick.resultAs<BlockAnswer>("eth_getBlockByNumber", "latest", false);
    expect(latest.number).toBe(await yardstick.result("eth_blockNumber"));
    expect(block.parentHash).toBe((await yardstick.resultAs<BlockAnswer>("eth_getBlockByNumber", "0x1", false)).hash);
    expect(await yardstick.resultAs<BlockAnswer>("eth_getBlockByNumber", "0xffffff", false)).toBeNull();
    expect(await yardstick.result("eth_getBlockByHash", NOWHERE, false)).toBeNull();
    expect(await yardstick.result("eth_getBlockTransactionCountByNumber", "0x2")).toBe("0x1");
    expect(await yardstick.result("eth_getBlockTransactionCountByHash", block.hash)).toBe("0x1");
    const receipts = await yardstick.resultAs<ReceiptAnswer[]>("eth_getBlockReceipts", "0x2");
    expect(receipts.map((receipt) => receipt.transactionHash)).toEqual([yardstick.stored]);
  });

  it("the chain returns storage, balances and nonces", async () => {
    expect(await yardstick.result("eth_getStorageAt", yardstick.contract, "0x1", "latest")).toMatch(
      /^0x0{63}[1-9a-f]$/,
    );
    expect(await yardstick.result("eth_getBalance", PAUPER.address, "latest")).toBe("0x0");
    expect(BigInt(await yardstick.result("eth_getBalance", SIGNER.address, "latest"))).toBeGreaterThan(10n ** 20n);
    expect(await yardstick.result("eth_getTransactionCount", PAUPER.address, "latest")).toBe("0x0");
    expect(await yardstick.result("eth_getTransactionCount", SIGNER.address, "0x1")).toBe("0x1");
    expect(await yardstick.result("eth_getTransactionCount", yardstick.contract, "latest")).toMatch(/^0x[1-9a-f]/);
  });

  it("the chain returns gas prices and the fee history", async () => {
    expect(BigInt(await yardstick.result("eth_gasPrice"))).toBeGreaterThanOrEqual(7n);
    expect(BigInt(await yardstick.result("eth_maxPriorityFeePerGas"))).toBeGreaterThanOrEqual(0n);
    const history = await yardstick.resultAs<FeeHistoryAnswer>("eth_feeHistory", "0x2", "latest", [50]);
    expect(history.baseFeePerGas).toHaveLength(3);
    expect(history.gasUsedRatio).toHaveLength(2);
    expect(history.reward).toHaveLength(2);
    const newest = BigInt(await yardstick.result("eth_blockNumber"));
    expect(BigInt(history.oldestBlock)).toBe(newest - 1n);
  });

  it("eth_getProof proves an account and a slot", async () => {
    const proof = await yardstick.resultAs<ProofAnswer>(
      "eth_getProof",
      yardstick.contract,
      [numberToHex(1, { size: 32 }), NOWHERE],
      "latest",
    );
    const block = await yardstick.resultAs<BlockAnswer>("eth_getBlockByNumber", "latest", false);
    expect(keccak256(proof.accountProof[0] ?? "0x")).toBe(block.stateRoot);
    expect(keccak256(proof.storageProof[0]?.proof[0] ?? "0x")).toBe(proof.storageHash);
    expect(BigInt(proof.storageProof[0]?.value ?? -1)).toBe(
      BigInt(await yardstick.result("eth_getStorageAt", yardstick.contract, "0x1", "latest")),
    );
    expect(proof.storageProof[1]).toMatchObject({ value: "0x0" });
    expect(proof.nonce).toBe(await yardstick.result("eth_getTransactionCount", yardstick.contract, "latest"));
  });
});
