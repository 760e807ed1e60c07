import { type EmbeddedChain, startEmbeddedChain } from "@stele/chain";
import { Signer } from "@stele/eth/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSystemClock } from "../../lib/system/clock.ts";
import { describeLedger } from "../../ports/ledger.contract.ts";
import { createEvmHarness, type EvmHarness, testKey } from "./testing/evm-harness.ts";

const keysMax = 40;

let chain: EmbeddedChain;
let harnesses = 0;

beforeAll(async () => {
  const names = Array.from({ length: keysMax }, (_, index) => [`key ${index}`, `stranger to key ${index}`]).flat();
  const genesisAccounts = names.map((name) => new Signer(testKey(name)).address);
  chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
});

afterAll(async () => {
  await chain.stop();
});

/** Each test has its own key, and so its own registry. */
async function createHarness(): Promise<EvmHarness> {
  harnesses += 1;
  return createEvmHarness(chain, `key ${harnesses}`);
}

describeLedger("EvmLedger on the embedded chain", createHarness);

test("warns if the newest block is dated more than a minute ahead of the clock", async () => {
  const { createLedger } = await createHarness();
  let lateMs = 0;
  const ledger = createLedger({ clock: { ...createSystemClock(), now: () => Date.now() - lateMs } });
  await ledger.start();
  try {
    const { headBlock, warning } = ledger.view();
    expect(warning).toBeUndefined();
    lateMs = 3_600_000;
    expect(ledger.view().warning).toMatch(
      new RegExp(`^block ${headBlock} is dated .*Z, 3[56]\\d\\d s ahead of this machine's clock`),
    );
  } finally {
    await ledger.stop();
  }
});

test("shows its account with balance and fees, and only its finality before the start", async () => {
  const { createLedger } = await createHarness();
  const ledger = createLedger();
  expect(await ledger.readInfo()).toEqual({ finality: "latest", account: undefined });
  await ledger.start();
  try {
    const { account } = await ledger.readInfo();
    expect(account).toMatchObject({ address: ledger.sender, transactionsUnderWay: 0 });
    expect(account?.balance).toBeGreaterThan(0n);
    expect(["eip1559", "legacy"]).toContain(account?.fees.kind);
  } finally {
    await ledger.stop();
  }
});
