import { Signer, toQuantity } from "@stele/eth/node";
import { afterEach, expect, test } from "vitest";
import { silentLogger } from "../../lib/logger.ts";
import type { EvmLedgerOptions } from "./evm-ledger-options.ts";
import { until, WriterWorld } from "./testing/writer-world.ts";

let world: WriterWorld;

afterEach(async () => {
  await world.stop();
});

test.each<{ readonly what: string; readonly args: readonly string[]; readonly settings: Partial<EvmLedgerOptions> }>([
  { what: "with a higher fee", args: [], settings: {} },
  {
    what: "with the same fee if fees are zero",
    args: ["--gas-price", "0", "--block-base-fee-per-gas", "0"],
    settings: { fees: "zero" },
  },
])("signs another version of the next transaction in line if the pool holds it back, $what", async (given) => {
  world = await WriterWorld.start(given.args);
  await (await world.createFirstWriter(given.settings)).ledger.stop();
  const lines: string[] = [];
  const logger = { ...silentLogger, info: (message: string) => void lines.push(message) };
  const writer = await world.createWriter({ ...given.settings, logger });
  const next = toQuantity((await world.transactionCount()) + 1);
  const raws = new Set<unknown>();
  let isCounted = false;
  world.provider.current = async ({ method, params }, pass) => {
    if (method === "eth_sendRawTransaction") raws.add(params?.[0]);
    if (method === "eth_getTransactionByHash" && !isCounted) return null;
    return method === "eth_getTransactionCount" && !isCounted ? next : pass();
  };
  // The pool files the transaction behind a nonce gap, and does not notice that the gap closes, as in anvil's race.
  const outcome = writer.append("a");
  await until(async () => (await world.poolSize()) === 1);
  await world.ask("anvil_setNonce", new Signer(world.privateKey).address, next);
  isCounted = true;
  expect(await outcome).toMatchObject({ firstSequence: 1 });
  expect(raws.size).toBe(2);
  expect(lines).toContain("transaction held back by the endpoint's pool, signing another version");
  expect(await writer.append("b")).toMatchObject({ firstSequence: 2 });
  expect(await world.published()).toEqual(["a", "b"]);
  await writer.ledger.stop();
});
