import { createWalletClient, http, parseGwei, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { anvil as anvilChain } from "viem/chains";
import { describe, expect, it } from "vitest";
import { devKey } from "../../harness/anvil.ts";
import { until } from "../../harness/until.ts";
import { ChainScenario } from "../support/chain-scenario.ts";

const signer = privateKeyToAccount(devKey(0));
const times = 5;
const eventsAwaited = 40;

describe("transactions that do not get into a block", () => {
  it.concurrent("a transaction that is dropped from the pool is sent again: no event is lost or duplicated", async () => {
    await using scenario = await ChainScenario.start();
    for (let time = 0; time < times; time += 1) {
      await until("a transaction is dropped", () => dropWaiting(scenario));
      await scenario.untilAcknowledged(1);
    }
    await scenario.untilAcknowledged(eventsAwaited);
    await scenario.expectRecovered();
  });

  it.concurrent("a transaction that loses its nonce to another transaction of the same key is sent again with a new nonce", async () => {
    await using scenario = await ChainScenario.start();
    const wallet = createWalletClient({
      account: signer,
      chain: anvilChain,
      transport: http(scenario.anvil.url, { retryCount: 0 }),
      pollingInterval: 50,
    }).extend(publicActions);
    for (let time = 0; time < times; time += 1) {
      // The fee is high enough to replace the broker's transaction at this nonce.
      const nonce = await wallet.getTransactionCount({ address: signer.address, blockTag: "latest" });
      const fees = { maxFeePerGas: parseGwei("900"), maxPriorityFeePerGas: parseGwei("900") };
      const taken = await wallet
        .sendTransaction({ to: signer.address, value: 1n, nonce, gas: 21_000n, ...fees })
        .catch(() => undefined); // A block already has that nonce.
      if (taken !== undefined)
        expect((await wallet.waitForTransactionReceipt({ hash: taken, checkReplacement: false })).status).toBe(
          "success",
        );
      await scenario.untilAcknowledged(1);
    }
    await scenario.untilAcknowledged(eventsAwaited);
    await scenario.expectRecovered();
  });

  it.concurrent("a transaction whose fee is too low after a rise of the base fee is replaced by one with a higher fee", async () => {
    await using scenario = await ChainScenario.start();
    for (let time = 0; time < 2; time += 1) {
      await scenario.anvil.request("anvil_setNextBlockBaseFeePerGas", [`0x${parseGwei("400").toString(16)}`]);
      await scenario.untilAcknowledged(eventsAwaited);
    }
    await scenario.expectRecovered();
  });
});

/** Drops a transaction of the broker that waits in the pool. Returns false if none does, or if a block takes it meanwhile. */
async function dropWaiting({ anvil }: ChainScenario): Promise<boolean> {
  const waiting = (await anvil.request("txpool_content")) as {
    pending: Readonly<Record<string, Readonly<Record<string, { hash: string }>>>>; // By sender and nonce.
  };
  const hash = Object.values(waiting.pending).flatMap((byNonce) => Object.values(byNonce))[0]?.hash;
  return hash !== undefined && (await anvil.request("anvil_dropTransaction", [hash])) === hash;
}
