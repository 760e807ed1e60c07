import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EndpointError } from "../endpoint/endpoint-error.ts";
import type { EvmProvider } from "../endpoint/rpc.ts";
import { ProofMaker } from "./proof-maker.ts";
import { AnvilChain, someEvents } from "./testing/anvil-chain.ts";
import { prove, type Published } from "./testing/prove.ts";

const topic = "proof/faults";

let chain: AnvilChain;
let batch: Published;

beforeAll(async () => {
  chain = await AnvilChain.start();
  await chain.open(topic);
  const [published] = await chain.publish(topic, [someEvents(3)]);
  if (published === undefined) throw new Error("no batch");
  batch = published;
});

afterAll(async () => {
  await chain.stop();
});

type RpcObject = Readonly<Record<string, unknown>>;
/** Functions that change the endpoint's answers, by method. */
interface Changes {
  readonly eth_getBlockByNumber?: (block: RpcObject) => unknown;
  readonly eth_getBlockReceipts?: (receipts: readonly RpcObject[]) => unknown;
  readonly eth_getTransactionReceipt?: () => unknown;
}

async function refusal(changes: Changes): Promise<unknown> {
  const table: Readonly<Record<string, ((answer: never) => unknown) | undefined>> = { ...changes };
  const provider: EvmProvider = {
    request: async (request) => {
      const answer = await chain.provider.request(request);
      const change = table[request.method];
      return change === undefined ? answer : change(answer as never); // The answer to the method that the change is for.
    },
  };
  return prove({ provider, registry: chain.registry }, batch, 1).then(
    () => "a proof",
    (error: unknown) => error,
  );
}

const nothing = () => null;

function withFields(fields: RpcObject) {
  return (block: RpcObject): RpcObject => ({ ...block, ...fields });
}

function withFirst(fields: RpcObject) {
  return ([first, ...others]: readonly RpcObject[]): readonly RpcObject[] => [{ ...first, ...fields }, ...others];
}

function refuse(code: number, message: string) {
  return (): never => {
    throw Object.assign(new Error(message), { code });
  };
}

function longLogs(): readonly RpcObject[] {
  return [{ data: `0x${"00".repeat(8_400_000)}` }];
}

function tooLong(): never {
  throw new EndpointError("the answer is longer than it may be", { reach: "answer-too-long" });
}

function lose(): never {
  throw new TypeError("fetch failed");
}

describe("ProofMaker with faults", () => {
  test.each<readonly [string, RegExp, Changes]>([
    ["of a block that the chain node does not have", /does not have block/, { eth_getBlockByNumber: nothing }],
    [
      "if the header does not hash to the block's hash",
      /header/,
      { eth_getBlockByNumber: withFields({ extraData: "0x01" }) },
    ],
    ["if a number in the block is 0x", /header/, { eth_getBlockByNumber: withFields({ gasUsed: "0x" }) }],
    ["if the block lacks a field", /header/, { eth_getBlockByNumber: withFields({ stateRoot: undefined }) }],
    [
      "if the receipts are pruned",
      /no longer has the receipts/,
      { eth_getBlockReceipts: nothing, eth_getTransactionReceipt: nothing },
    ],
    ["from altered receipts", /do not hash/, { eth_getBlockReceipts: withFirst({ cumulativeGasUsed: "0x1" }) }],
    ["from receipts with a status of 0x", /do not hash/, { eth_getBlockReceipts: withFirst({ status: "0x" }) }],
    ["from receipts with 0x gas", /do not hash/, { eth_getBlockReceipts: withFirst({ cumulativeGasUsed: "0x" }) }],
    ["from receipts that lack a field", /do not hash/, { eth_getBlockReceipts: withFirst({ logsBloom: null }) }],
    ["from receipts with a log that is null", /do not hash/, { eth_getBlockReceipts: withFirst({ logs: [null] }) }],
    ["from receipts with a log without data", /do not hash/, { eth_getBlockReceipts: withFirst({ logs: [{}] }) }],
    ["from receipts without the log of the event", /do not hash/, { eth_getBlockReceipts: withFirst({ logs: [] }) }],
    ["from a block that is garbage", /does not have block/, { eth_getBlockByNumber: () => "garbage" }],
    [
      "from receipts that are garbage",
      /no longer has/,
      { eth_getBlockReceipts: () => [1], eth_getTransactionReceipt: () => 1 },
    ],
    [
      "if the chain node refuses the request",
      /refused block/,
      { eth_getBlockByNumber: refuse(-32_000, "missing trie node") },
    ],
  ])("makes no proof %s", async (_, message, changes) => {
    expect(await refusal(changes)).toMatchObject({ code: 200206, message: expect.stringMatching(message) });
  });

  test.each([
    ["read at once", { eth_getBlockReceipts: withFirst({ logs: longLogs() }) }],
    ["read one by one", { eth_getBlockReceipts: nothing, eth_getTransactionReceipt: () => ({ logs: longLogs() }) }],
    ["all in one answer beyond its limit", { eth_getBlockReceipts: tooLong }],
    ["one in an answer beyond its limit", { eth_getBlockReceipts: nothing, eth_getTransactionReceipt: tooLong }],
  ] satisfies [string, Changes][])(
    "makes no proof from receipts that a stranger made too long: %s",
    async (_, changes) => {
      expect(await refusal(changes)).toMatchObject({
        code: 200206,
        message: expect.stringMatching(/block \d+: its receipts are longer than 16777216 bytes/),
      });
    },
  );

  test.each([
    ["its receipts", {}, ["eth_getBlockByNumber", "eth_getBlockReceipts", "eth_getBlockByNumber"]],
    ["it, on the embedded chain,", { follow: () => () => {} }, ["eth_getBlockByNumber", "eth_getBlockReceipts"]],
  ])(
    "makes no proof from a block whose receipts were too long before, and does not request %s again",
    async (_, own, methods) => {
      const asked: string[] = [];
      const provider: EvmProvider = {
        ...own,
        request: async (request) => {
          asked.push(request.method);
          if (request.method === "eth_getBlockReceipts") tooLong();
          return chain.provider.request(request);
        },
      };
      const maker = new ProofMaker({ provider, registry: chain.registry });
      const place = { address: chain.registry, blockNumber: batch.blockNumber, firstSequence: 1, index: 0 };
      for (let times = 0; times < 2; times += 1) {
        await expect(maker.make(place, AbortSignal.timeout(20_000))).rejects.toMatchObject({ code: 200206 });
      }
      expect(asked).toEqual(methods);
    },
  );

  test("makes a proof if another endpoint has the block and the receipts that the first one has deleted", async () => {
    const provider: EvmProvider = {
      request: async (call) => (call.isPromised === true ? chain.provider.request(call) : null),
    };
    await expect(prove({ provider, registry: chain.registry }, batch, 1)).resolves.toBeDefined();
  });

  test("makes no proof of an event that the block does not contain", async () => {
    const maker = new ProofMaker({ provider: chain.provider, registry: chain.registry });
    const place = { address: chain.registry, blockNumber: batch.blockNumber, firstSequence: 1_000, index: 0 };
    const message = expect.stringMatching(/does not hold the event/);
    await expect(maker.make(place, AbortSignal.timeout(20_000))).rejects.toMatchObject({ code: 200206, message });
  });

  test("fails with 200205 if the connection to the endpoint is lost", async () => {
    expect(await refusal({ eth_getBlockByNumber: lose })).toMatchObject({ code: 200205 });
    expect(await refusal({ eth_getBlockReceipts: lose })).toMatchObject({ code: 200205 });
  });

  test("fails with 200205 if the endpoint does not answer in time", async () => {
    const deadline = new AbortController();
    const silent: EvmProvider = {
      request: () => {
        deadline.abort();
        return new Promise(() => {});
      },
    };
    const place = { address: chain.registry, blockNumber: 1, firstSequence: 1, index: 0 };
    const made = new ProofMaker({ provider: silent, registry: chain.registry }).make(place, deadline.signal);
    await expect(made).rejects.toMatchObject({ code: 200205 });
  });
});
