import { describe, expect, test } from "vitest";
import { GasPolicy, publishGas } from "./gas.ts";
import { TransactionRoom } from "./transaction-room.ts";

const configured = { eventsPerTransactionMax: 1000, bytesPerTransactionMax: 98_304, transactionsInFlightMax: 16 };
const batchOf = (bytes: number, count: number) =>
  ({ address: "0x", count, eventsRoot: new Uint8Array(32), events: new Uint8Array(bytes) }) as const;

describe("the room for events in a transaction", () => {
  test("the room is the configured one if a block has gas for it", () => {
    const room = new TransactionRoom(configured);
    room.onHead(30_000_000);
    expect(room.limits).toEqual({ ...configured, bytesPerTopic: 224 });
  });

  test("the room is the configured one, and a block has gas for everything, if the gas of a block is unknown", () => {
    const room = new TransactionRoom(configured);
    for (const gasLimit of [500_000, 0]) room.onHead(gasLimit);
    expect([room.limits, room.blockGas]).toEqual([{ ...configured, bytesPerTopic: 224 }, Number.POSITIVE_INFINITY]);
  });

  test.each([500_000, 1_000_000, 3_000_000])(
    "the room fits a block of %i gas, and uses nearly all of it",
    (gasLimit) => {
      const room = new TransactionRoom(configured);
      room.onHead(gasLimit);
      const { bytesPerTransactionMax } = room.limits;
      expect(publishGas(bytesPerTransactionMax + 320, 1)).toBeLessThanOrEqual(gasLimit);
      expect(publishGas(bytesPerTransactionMax + 320, 1)).toBeGreaterThan(gasLimit * 0.99);
      room.onHead(30_000_000);
      expect(room.limits).toEqual({ ...configured, bytesPerTopic: 224 });
    },
  );

  test.each([1_000_000, 5_000_000, 10_000_000, 30_000_000])(
    "the room allows no more topics than fit into a block of %i gas",
    (gasLimit) => {
      const room = new TransactionRoom(configured);
      room.onHead(gasLimit);
      const { bytesPerTransactionMax, bytesPerTopic } = room.limits;
      const topicsMax = 1 + Math.floor(bytesPerTransactionMax / bytesPerTopic);
      expect(topicsMax).toBeGreaterThan(1);
      for (let topics = 1; topics <= topicsMax; topics += 1) {
        const eventBytes = bytesPerTransactionMax - (topics - 1) * bytesPerTopic;
        expect(publishGas(320 + 224 * (topics - 1) + eventBytes, topics)).toBeLessThanOrEqual(gasLimit);
      }
    },
  );

  test("the room fits a block of a chain that charges more than the formula", () => {
    const gas = new GasPolicy();
    const { formulaGas } = gas.forPublish(1000, 1);
    const room = new TransactionRoom(configured);
    room.onHead(10_000_000, { gasFactor: gas.factor });
    expect(room.limits.bytesPerTransactionMax).toBe(configured.bytesPerTransactionMax);
    gas.onShort(formulaGas * 4, formulaGas);
    room.onHead(10_000_000, { gasFactor: gas.factor });
    const { bytesPerTransactionMax, bytesPerTopic } = room.limits;
    expect(gas.forPublish(320 + bytesPerTransactionMax, 1).gas).toBeLessThanOrEqual(10_000_000);
    expect(gas.forPublish(320 + bytesPerTransactionMax, 1).gas).toBeGreaterThan(9_900_000);
    const topics = 1 + Math.floor(bytesPerTransactionMax / bytesPerTopic);
    expect(gas.forPublish(320 + 224 * (topics - 1), topics).gas).toBeLessThanOrEqual(10_000_000);
  });

  test("the room allows half of the fee that an endpoint refused, at each price of gas", () => {
    const room = new TransactionRoom(configured);
    const price = 1_000_000_000_000n;
    room.onHead(30_000_000, { price });
    room.onFeeCapped(4_000_000, price);
    const gasOf = () => publishGas(room.limits.bytesPerTransactionMax + 320, 1);
    expect(gasOf()).toBeLessThanOrEqual(2_000_000);
    expect(gasOf()).toBeGreaterThan(1_980_000);
    expect(room.blockGas).toBe(30_000_000); // A single event may still be larger.
    room.onHead(30_000_000, { price: 2n * price });
    expect(gasOf()).toBeLessThanOrEqual(1_000_000);
    room.onFeeCapped(30_000_000, price); // It was sent at the earlier price.
    expect(gasOf()).toBeGreaterThan(1_980_000);
    room.onHead(30_000_000, { price: price / 100n });
    expect(room.limits).toEqual({ ...configured, bytesPerTopic: 224 });
  });

  test("the room halves if several events are refused, shrinks below a single refused event, and stays at least 1,024 bytes", () => {
    const room = new TransactionRoom(configured);
    room.onTooLarge([batchOf(60_000, 10), batchOf(20_000, 1)]);
    expect(room.limits.bytesPerTransactionMax).toBe(40_112);
    room.onTooLarge([batchOf(60_000, 1)]);
    expect(room.limits.bytesPerTransactionMax).toBe(40_112);
    room.onTooLarge([batchOf(30_000, 1)]);
    expect(room.limits.bytesPerTransactionMax).toBe(29_999);
    room.onTooLarge([batchOf(10, 2)]);
    expect(room.limits.bytesPerTransactionMax).toBe(1024);
  });
});

test("a refusal of 1,000 topics with small events leaves most of the room, since their overhead counts", () => {
  const room = new TransactionRoom({ ...configured, bytesPerTransactionMax: 120_000 });
  room.onTooLarge(Array.from({ length: 1000 }, () => batchOf(8, 1)));
  expect(room.limits.bytesPerTransactionMax).toBeGreaterThan(100_000);
});

describe("GasPolicy", () => {
  test("raises the gas, with a margin, if the chain charges more than the formula, and does not lower it again", () => {
    const gas = new GasPolicy();
    const { gas: first, formulaGas } = gas.forPublish(1000, 1);
    expect(first).toBe(formulaGas);
    const needed = gas.onShort(formulaGas * 2, formulaGas);
    expect(needed).toBe(Math.ceil(formulaGas * 2.4));
    const next = gas.forPublish(1000, 1);
    expect(next).toEqual({ gas: needed, formulaGas });
    gas.onShort(formulaGas, formulaGas);
    expect(gas.forPublish(1000, 1)).toEqual(next);
  });

  test("raises the gas only once for several transactions that were sent together", () => {
    const gas = new GasPolicy();
    const { formulaGas } = gas.forPublish(1000, 1);
    for (let times = 0; times < 4; times += 1) gas.onShort(formulaGas * 2, formulaGas);
    expect(gas.forPublish(1000, 1).gas).toBe(Math.ceil(formulaGas * 2.4));
  });

  test("learns nothing from a transaction that does not publish, such as one that closes a topic", () => {
    const gas = new GasPolicy();
    expect(gas.onShort(200_000, undefined)).toBe(240_000);
    const { gas: next, formulaGas } = gas.forPublish(1000, 1);
    expect(next).toBe(formulaGas);
  });
});
