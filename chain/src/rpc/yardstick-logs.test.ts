import { type Hex, numberToHex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LogAnswer } from "../testing/answers.ts";
import { BACKENDS } from "../testing/backends.ts";
import { PAUPER } from "../testing/client.ts";
import { NOWHERE, PLAIN_TOPIC, STORED_TOPIC, Yardstick } from "../testing/yardstick.ts";

describe.each(BACKENDS)("logs: $name", ({ start }) => {
  let yardstick: Yardstick;

  beforeAll(async () => {
    yardstick = await Yardstick.create(await start());
  });
  afterAll(() => yardstick.stop());

  /** Polls until a filter has changes: anvil updates its filters shortly after a block's receipts are available. */
  async function changesOf<Change>(filter: Hex): Promise<readonly Change[]> {
    for (;;) {
      const changes = await yardstick.resultAs<readonly Change[]>("eth_getFilterChanges", filter);
      if (changes.length > 0) return changes;
    }
  }

  it("the chain finds logs by address, topics and blocks", async () => {
    const from = await yardstick.result("eth_blockNumber");
    const many = await yardstick.send({ functionName: "emitMany", args: [3n] });
    const one = await yardstick.send({ functionName: "store", args: [500n, 1n, "0x01"] });
    const find = async (filter: object) =>
      (await yardstick.resultAs<LogAnswer[]>("eth_getLogs", { fromBlock: from, toBlock: "latest", ...filter })).length;
    const after = numberToHex(BigInt(from) + 1n);
    expect(await find({ fromBlock: after })).toBe(4);
    expect(await find({ fromBlock: after, address: yardstick.contract })).toBe(4);
    expect(await find({ fromBlock: after, address: [yardstick.contract, PAUPER.address] })).toBe(4);
    expect(await find({ fromBlock: after, address: PAUPER.address })).toBe(0);
    expect(await find({ fromBlock: after, topics: [PLAIN_TOPIC] })).toBe(3);
    expect(await find({ fromBlock: after, topics: [[PLAIN_TOPIC, STORED_TOPIC]] })).toBe(4);
    expect(await find({ fromBlock: after, topics: [null, numberToHex(500, { size: 32 })] })).toBe(1);
    expect(await find({ fromBlock: after, topics: [STORED_TOPIC, [numberToHex(500, { size: 32 }), NOWHERE]] })).toBe(1);
    expect(await find({ fromBlock: after, topics: [STORED_TOPIC, NOWHERE] })).toBe(0);
    expect(await find({ fromBlock: numberToHex(one.blockNumber), toBlock: numberToHex(one.blockNumber) })).toBe(1);
    const byHash = await yardstick.resultAs<LogAnswer[]>("eth_getLogs", { blockHash: many.blockHash });
    expect(byHash.map((log) => Number(log.logIndex))).toEqual([0, 1, 2]);
    expect(byHash[2]).toMatchObject({ transactionHash: many.transactionHash, data: numberToHex(2, { size: 32 }) });
  });

  it("the chain returns each change of a filter once", async () => {
    const logs = await yardstick.result("eth_newFilter", { address: yardstick.contract, topics: [PLAIN_TOPIC] });
    const blocks = await yardstick.result("eth_newBlockFilter");
    const first = await yardstick.send({ functionName: "emitMany", args: [2n] });
    expect((await changesOf<LogAnswer>(logs)).map((log) => log.transactionHash)).toEqual([
      first.transactionHash,
      first.transactionHash,
    ]);
    expect(await yardstick.resultAs<LogAnswer[]>("eth_getFilterChanges", logs)).toEqual([]);
    expect(await changesOf(blocks)).toEqual([first.blockHash]);
    expect(await yardstick.result("eth_uninstallFilter", logs)).toBe(true);
    expect(await yardstick.result("eth_uninstallFilter", logs)).toBe(false);
  });
});
