import { type Hex, toHex } from "@stele/eth/node";
import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";
import { hashOf, TestJournal } from "../testing/writer-world.ts";

const minute = 60_000;
const data = (mark: number): Uint8Array => new Uint8Array(40).fill(mark);
const bad = data(1);

/** A chain node that fails at one transaction, whatever its price, and accepts all others. */
function startFailing({ deadlineMs = 30_000, code = -32_603, message = "Internal error" } = {}): SenderWorld {
  const world = new SenderWorld({ deadlineMs, journal: new TestJournal() });
  world.node.onSend = (raw) => {
    if (parseTransaction(raw).data === toHex(bad)) throw Object.assign(new Error(message), { code });
  };
  return world;
}

/** The nonces and data in the chain node's pool. */
const pooled = ({ node }: SenderWorld): readonly (readonly [number, string | undefined])[] =>
  [...node.pool].map((raw) => parseTransaction(raw)).map(({ nonce = 0, data }) => [nonce, data] as const);

const priceOf = (raw: Hex): bigint => parseTransaction(raw).gasPrice ?? 0n;

test.each([
  { isStrict: false, code: -32_603, message: "Internal error" },
  { isStrict: true, code: -32_000, message: "internal error" },
])("a no-op replaces a transaction at which the chain node always fails: %j", async ({ isStrict, ...error }) => {
  const world = startFailing(error);
  const { clock, node, sender, signer } = world;
  node.isStrict = isStrict;
  const request = { to: signer.address, data: bad, gas: 50_000, logsExpected: 1 };
  const answer = sender.send(request, new AbortController().signal).catch((error: unknown) => error);
  await clock.settle();
  await world.send(1, { data: data(2) });
  await clock.advance(2 * minute);
  expect(await answer).toMatchObject({ code: 200201 });
  expect(pooled(world).filter(([nonce]) => nonce === 0)).toEqual([]); // The chain node may have it, so the sender does not give it up at once.
  await clock.advance(9 * minute);
  await world.send(1, { data: data(3) });
  const contents = pooled(world).toSorted(([left], [right]) => left - right);
  expect([contents[0], contents.at(-1)?.[1]]).toEqual([[0, undefined], toHex(data(3))]);
});

test("gives up no transaction of unknown fate because of a limit of the endpoint, and sends it once the endpoint accepts it", async () => {
  const world = startFailing();
  const { clock, node } = world;
  await world.send(1, { data: bad });
  await clock.advance(10_000);
  node.onSend = () => {
    throw Object.assign(new Error("limit exceeded"), { code: -32_005 });
  };
  await clock.advance(30 * minute);
  node.onSend = () => {};
  await clock.advance(minute);
  expect(pooled(world)).toEqual([[0, toHex(bad)]]);
});

test("sends a no-op again after the chain node refused it once for lack of funds", async () => {
  const world = new SenderWorld({ fees: "legacy", deadlineMs: 30_000, feeBumpAfterMs: 20_000 });
  const { clock, fees, node } = world;
  await fees.refresh();
  const price = 1_000_000_000n; // The chain node's gas price.
  let isRefused = false;
  node.onSend = (raw) => {
    const { data, gasPrice = 0n } = parseTransaction(raw);
    if (data === toHex(bad)) throw Object.assign(new Error("Internal error"), { code: -32_603 });
    if (isRefused && gasPrice <= price) return;
    isRefused = true;
    throw Object.assign(new Error("insufficient funds for gas * price + value"), { code: -32_000 });
  };
  await world.send(1, { data: bad });
  for (let seconds = 0; seconds < 1200; seconds += 1) {
    world.head += 1;
    await clock.advance(1000);
  }
  expect(pooled(world)).toEqual([[0, undefined]]);
});

test("raises the fee of a no-op at once until it replaces an earlier run's transaction that exceeds the gas of a block", async () => {
  const journal = new TestJournal();
  const options = { fees: "legacy", journal, feeBumpAfterMs: 5000 } as const;
  const earlier = new SenderWorld(options);
  await earlier.fees.refresh();
  await earlier.send(1, { data: bad, gas: 900_000 });
  earlier.head += 1;
  await earlier.timeUntil(() => earlier.node.pool.size === 3); // Its fee has been raised twice.
  await earlier.sender.stop(AbortSignal.abort());
  const known = [...earlier.node.pool].toSorted((left, right) => Number(priceOf(right) - priceOf(left)));
  const [dearest = "0x"] = known;
  const world = new SenderWorld({ ...options, feeBumpAfterMs: 60 * minute });
  await world.fees.refresh();
  world.node.pool.add(dearest);
  world.node.onSend = (raw) => {
    if (!known.includes(raw) && priceOf(raw) * 10n < priceOf(dearest) * 11n)
      throw Object.assign(new Error("replacement transaction underpriced"), { code: -32_000 });
  };
  world.blockGas = 500_000;
  await world.sender.start();
  await world.clock.advance(5000);
  expect(pooled(world)).toContainEqual([0, undefined]);
});

test("does not give up a transaction that a caller waits for", async () => {
  const world = startFailing({ deadlineMs: 20 * minute });
  await world.send(1, { data: bad });
  await world.clock.advance(10 * minute);
  expect(pooled(world)).toEqual([]);
});

test("gives up only one of five transactions if the chain node answers each of them with an internal error", async () => {
  const world = startFailing();
  const { clock, node } = world;
  let isFailing = true;
  node.onSend = () => {
    if (isFailing) throw Object.assign(new Error("Internal error"), { code: -32_603 });
  };
  for (let mark = 1; mark <= 5; mark += 1) await world.send(1, { data: data(mark) });
  await clock.advance(60 * minute);
  isFailing = false;
  await clock.advance(minute);
  expect(pooled(world).filter(([, data]) => data === undefined)).toHaveLength(1);
  expect(pooled(world)).toHaveLength(5);
});

test("does not give up a transaction while no endpoint answers", async () => {
  const world = new SenderWorld({ deadlineMs: 30_000, journal: new TestJournal() });
  const { clock, node } = world;
  let isLost = false;
  node.before = async (method) => {
    if (method === "eth_sendRawTransaction") isLost = true;
    node.isAway = isLost;
  };
  await world.send(1, { data: data(1) });
  await clock.advance(60 * minute);
  node.before = async () => {};
  node.isAway = false;
  await clock.advance(minute);
  expect(pooled(world)).toEqual([[0, toHex(data(1))]]);
});

test("gives up only one transaction while the chain node answers each with an internal error, and blocks include all nonces afterwards", async () => {
  const world = startFailing();
  const { clock, node, sender } = world;
  let isFailing = true;
  node.onSend = () => {
    if (isFailing) throw Object.assign(new Error("Internal error"), { code: -32_603 });
  };
  for (let mark = 1; mark <= 5; mark += 1) {
    await world.send(1, { data: data(mark) });
    await clock.advance(1500);
  }
  await clock.advance(60 * minute);
  isFailing = false;
  const included: Hex[] = [];
  for (let ticks = 0; ticks < 200; ticks += 1) {
    const next = [...node.pool].find((raw) => parseTransaction(raw).nonce === included.length);
    if (next !== undefined) {
      node.pool.delete(next);
      node.included.add(hashOf(next));
      included.push(next);
      world.readUpTo = 1;
      sender.onRound({ logs: [] });
    }
    await clock.advance(250);
  }
  const contents = included.map((raw) => parseTransaction(raw).data);
  expect(contents).toEqual([undefined, ...[2, 3, 4, 5].map((mark) => toHex(data(mark)))]);
});
