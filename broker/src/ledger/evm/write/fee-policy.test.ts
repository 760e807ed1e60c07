import { describe, expect, test } from "vitest";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { FeePolicy, type FeeSettings } from "./fee-policy.ts";
import { readHeader, Rpc } from "../endpoint/rpc.ts";

const gwei = 1_000_000_000n;

const hash = `0x${"00".repeat(32)}` as const;
const head = readHeader({ number: "0x1", hash, parentHash: hash, timestamp: "0x0", gasLimit: "0x1", logsBloom: "0x" });

/** A policy that knows a gas price of 12 gwei, a tip of 2 gwei, and a head with this base fee in wei. */
async function policyOf(settings: Partial<FeeSettings>, baseFeePerGas: bigint | undefined): Promise<FeePolicy> {
  const answers = new Map([
    ["eth_gasPrice", "0x2cb417800"],
    ["eth_maxPriorityFeePerGas", "0x77359400"],
  ]);
  const rpc = new Rpc({ request: async ({ method }) => answers.get(method) });
  const fees = new FeePolicy(rpc, { mode: "auto", max: undefined, clock: new VirtualClock(), ...settings });
  await fees.refresh();
  fees.onHead({ ...head, baseFeePerGas });
  return fees;
}

const dynamic = (max: bigint, tip: bigint) =>
  ({ kind: "eip1559", maxFeePerGas: max * gwei, maxPriorityFeePerGas: tip * gwei }) as const;
const legacy = (price: bigint) => ({ kind: "legacy", gasPrice: price * gwei }) as const;

describe("offered fees", () => {
  test.each([
    ["auto with a base fee", {}, 10n, dynamic(22n, 2n)],
    ["auto without a base fee", {}, undefined, legacy(12n)],
    ["eip1559", { mode: "eip1559" }, undefined, dynamic(2n, 2n)],
    ["legacy over a base fee", { mode: "legacy" }, 10n, legacy(12n)],
    ["legacy over a base fee above the gas price", { mode: "legacy" }, 40n, legacy(40n)],
    ["zero", { mode: "zero" }, undefined, legacy(0n)],
    ["zero with a base fee", { mode: "zero" }, 0n, dynamic(0n, 0n)],
    ["a cap", { max: 15n * gwei }, 10n, dynamic(15n, 2n)],
    ["a cap below the tip", { max: gwei }, 10n, dynamic(1n, 1n)],
    ["a cap on legacy", { max: 5n * gwei }, undefined, legacy(5n)],
  ] as const)("offered fees: %s", async (...[, settings, baseFee, offered]) => {
    expect((await policyOf(settings, baseFee === undefined ? undefined : baseFee * gwei)).current()).toEqual(offered);
  });

  test.each([
    ["a quarter more", {}, 1n, dynamic(40n, 4n), dynamic(50n, 5n)],
    ["at least the current price", {}, 100n, dynamic(40n, 1n), dynamic(202n, 2n)],
    ["legacy, a quarter more", {}, undefined, legacy(20n), legacy(25n)],
    ["legacy, at least the gas price", {}, undefined, legacy(4n), legacy(12n)],
    ["up to the cap", { max: 46n * gwei }, 1n, dynamic(40n, 4n), dynamic(46n, 5n)],
    ["no replacement if the cap allows less than 13 % more", { max: 44n * gwei }, 1n, dynamic(40n, 4n), undefined],
    ["up to 16 times the current price", {}, 1n, dynamic(160n, 160n), dynamic(192n, 192n)],
    ["legacy, up to 16 times the gas price", {}, undefined, legacy(160n), legacy(192n)],
    ["a configured maximum above that", { max: 500n * gwei }, 1n, dynamic(160n, 4n), dynamic(200n, 5n)],
    ["no replacement if gas is free", { mode: "zero" }, undefined, legacy(0n), undefined],
  ] as const)("raised fees: %s", async (...[, settings, baseFee, old, raised]) => {
    const fees = await policyOf(settings, baseFee === undefined ? undefined : baseFee * gwei);
    expect(fees.raised(old)).toEqual(raised);
  });
});

test.each([
  ["is above it", 10n, dynamic(22n, 2n)],
  ["is below it", 13n, dynamic(26n, 0n)],
])(
  "if the endpoint suggests no tip, offers the part of the gas price above the base fee as tip: the gas price %s",
  async (...[, baseFee, offered]) => {
    const rpc = new Rpc({
      request: async ({ method }) => {
        if (method === "eth_gasPrice") return "0x2cb417800";
        throw Object.assign(new Error("the method does not exist"), { code: -32_601 });
      },
    });
    const fees = new FeePolicy(rpc, { mode: "auto", max: undefined, clock: new VirtualClock() });
    fees.onHead({ ...head, baseFeePerGas: baseFee * gwei });
    await fees.refresh();
    expect(fees.current()).toEqual(offered);
  },
);

test("raises a tip of zero as well, since geth accepts a replacement only if both of its prices are higher", async () => {
  const { fees } = startPolicy("auto");
  await fees.refresh();
  fees.onHead({ ...head, baseFeePerGas: gwei });
  const offered = fees.current();
  expect(offered).toEqual(dynamic(2n, 0n));
  const raised = fees.raised(offered);
  expect(raised).toEqual({ kind: "eip1559", maxFeePerGas: (25n * gwei) / 10n, maxPriorityFeePerGas: 1n });
  expect(raised && fees.raised(raised)).toMatchObject({ maxPriorityFeePerGas: 2n });
});

/** A policy on virtual time. Its endpoint's gas price is `price` gwei; if that is undefined, the endpoint does not answer. */
function startPolicy(mode: FeeSettings["mode"]) {
  const endpoint = { price: 12n as bigint | undefined, requests: 0 };
  const clock = new VirtualClock();
  const rpc = new Rpc({
    request: async ({ method }) => {
      endpoint.requests += 1;
      if (endpoint.price === undefined) throw new Error("no answer");
      return method === "eth_gasPrice" ? `0x${(endpoint.price * gwei).toString(16)}` : "0x0";
    },
  });
  return { endpoint, clock, fees: new FeePolicy(rpc, { mode, max: undefined, clock }) };
}

describe("the endpoint's prices", () => {
  test("the endpoint's prices are read again at the first head 15 s after the last read", async () => {
    const { endpoint, clock, fees } = startPolicy("legacy");
    await fees.refresh();
    endpoint.price = 30n;
    await clock.advance(14_000);
    fees.onHead(head);
    await clock.settle();
    expect(fees.current()).toEqual(legacy(12n));
    await clock.advance(1_000);
    fees.onHead(head);
    await clock.settle();
    expect(fees.current()).toEqual(legacy(30n));
  });

  test("a start reads the endpoint's prices once, even if the first head arrives before that read", async () => {
    const { endpoint, clock, fees } = startPolicy("auto");
    fees.onHead(head);
    await fees.refresh();
    await clock.settle();
    expect(endpoint.requests).toBe(2); // The gas price and the tip.
  });

  test("the known prices stay if the endpoint does not answer, and are requested once in 15 s", async () => {
    const { endpoint, clock, fees } = startPolicy("legacy");
    await fees.refresh();
    endpoint.price = undefined;
    const { requests } = endpoint;
    await clock.advance(15_000);
    for (let heads = 0; heads < 5; heads += 1) {
      fees.onHead(head);
      await clock.settle();
    }
    expect(fees.current()).toEqual(legacy(12n));
    expect(endpoint.requests - requests).toBe(1);
  });

  test("the endpoint's prices are never read where gas is free", async () => {
    const { endpoint, clock, fees } = startPolicy("zero");
    await clock.advance(60_000);
    fees.onHead(head);
    await clock.settle();
    expect(endpoint.requests).toBe(0);
  });
});
