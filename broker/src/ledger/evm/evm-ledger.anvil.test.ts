import { afterAll, beforeAll } from "vitest";
import { describeLedger } from "../../ports/ledger.contract.ts";
import { Signer } from "./native-crypto.ts";
import { type Anvil, startAnvil } from "./testing/anvil.ts";
import { createEvmHarness, type EvmHarness, testKey } from "./testing/evm-harness.ts";

let anvil: Anvil;
let harnesses = 0;

beforeAll(async () => {
  anvil = await startAnvil();
});

afterAll(async () => {
  await anvil.stop();
});

/** Each test has a key of its own, and so a registry of its own beside those of the others. */
async function createHarness(): Promise<EvmHarness> {
  harnesses += 1;
  const name = `key ${harnesses}`;
  for (const key of [name, `stranger to ${name}`]) {
    const { address } = new Signer(testKey(key));
    await anvil.provider.request({ method: "anvil_setBalance", params: [address, "0xffffffffffffffffffff"] });
  }
  return createEvmHarness(anvil.provider, name);
}

describeLedger("EvmLedger on anvil", createHarness);
