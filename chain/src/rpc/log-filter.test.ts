import { numberToHex } from "viem";
import { describe, expect, it } from "vitest";
import { LOG_FILTER_ALTERNATIVES_MAX, LOGS_ANSWER_LOGS_MAX } from "../limits.ts";
import { startEmbedded } from "../testing/backends.ts";
import { encodeCall, NOWHERE, PLAIN_TOPIC, Yardstick } from "../testing/yardstick.ts";
import { sendAndWait } from "../testing/client.ts";

describe("eth_getLogs", () => {
  it("eth_getLogs refuses a filter or answer over its limit, but not at it; eth_getFilterChanges returns more logs in several answers", async () => {
    const yardstick = await Yardstick.create(await startEmbedded());
    const emit = (count: number) =>
      sendAndWait(yardstick.client, {
        to: yardstick.contract,
        data: encodeCall({ functionName: "emitMany", args: [BigInt(count)] }),
        gas: 50_000_000n,
      });
    const polled = await yardstick.result("eth_newFilter", { topics: [PLAIN_TOPIC] });
    const first = await emit(LOGS_ANSWER_LOGS_MAX);
    const filter = { fromBlock: numberToHex(first.blockNumber), topics: [PLAIN_TOPIC] };
    expect(await yardstick.resultAs<unknown[]>("eth_getLogs", filter)).toHaveLength(LOGS_ANSWER_LOGS_MAX);
    await emit(1);
    expect(await yardstick.error("eth_getLogs", filter)).toMatchObject({
      code: -32005,
      message: expect.stringMatching(/^query returned more than 10000 results/),
    });
    const changes = () => yardstick.resultAs<unknown[]>("eth_getFilterChanges", polled);
    expect([await changes(), await changes(), await changes()].map(({ length }) => length)).toEqual([
      LOGS_ANSWER_LOGS_MAX,
      1,
      0,
    ]);
    const many = Array.from({ length: LOG_FILTER_ALTERNATIVES_MAX + 1 }, () => NOWHERE);
    expect(await yardstick.error("eth_getLogs", { topics: [many] })).toMatchObject({ code: -32602 });
    await yardstick.stop();
  });
});

it("if a search takes too long, eth_getFilterChanges does not repeat the search, and searches fewer blocks at the next poll", async () => {
  const yardstick = await Yardstick.create(await startEmbedded({ callTimeMsMax: 1 }));
  const polled = await yardstick.result("eth_newFilter", { topics: [PLAIN_TOPIC] });
  for (const count of [LOGS_ANSWER_LOGS_MAX, 1]) {
    const data = encodeCall({ functionName: "emitMany", args: [BigInt(count)] });
    await sendAndWait(yardstick.client, { to: yardstick.contract, data, gas: 50_000_000n });
  }
  expect(await yardstick.error("eth_getFilterChanges", polled)).toMatchObject({
    code: -32005,
    message: expect.stringMatching(/^query timeout exceeded/),
  });
  expect(await yardstick.result("eth_getFilterChanges", polled)).toHaveLength(LOGS_ANSWER_LOGS_MAX);
  expect(await yardstick.result("eth_getFilterChanges", polled)).toHaveLength(1);
  await yardstick.stop();
});
