import { Signer } from "@stele/eth/node";
import { expect, test } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { Rpc } from "../endpoint/rpc.ts";
import { testKey } from "../testing/evm-harness.ts";
import { connectionLost } from "../testing/intercepted-provider.ts";
import { InFlight } from "./in-flight.ts";
import { PendingTransaction } from "./pending-transaction.ts";
import { newTransaction } from "./transaction-state.ts";
import { Transmitter } from "./transmitter.ts";

const refusal = (message: string): Error => Object.assign(new Error(message), { code: -32_000 });

test.each([
  ["an acceptance", true, undefined],
  ["a known transaction", true, refusal("already known")],
  ["another refusal", true, refusal("transaction underpriced")],
  ["a refusal for its size", false, refusal("oversized data")],
  ["a refusal for its gas", false, refusal("intrinsic gas too low")],
  ["a refusal for its fee", false, refusal("tx fee (2.00 ether) exceeds the configured cap (1.00 ether)")],
  ["no answer", false, connectionLost()],
])("%s tells the caller that the transaction is not too large: %s", async (_, isKnown, answer) => {
  const signer = new Signer(testKey("transmitter"));
  const clock = new VirtualClock();
  const request = async (): Promise<void> => {
    if (answer !== undefined) throw answer;
  };
  const transmitter = new Transmitter({
    rpc: new Rpc({ request }),
    clock,
    logger: silentLogger,
    signer,
    chainId: 1,
    inFlight: new InFlight(),
    journal: undefined,
    head: () => 0,
    dispatch: (transaction, event) => void transaction.apply(event),
  });
  let isAccepted = false;
  const onAccepted = (): void => void (isAccepted = true);
  const call = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1, onAccepted };
  const pending = new PendingTransaction(newTransaction(signer.address, call), { at: 0, order: 1, lookUpAt: 0 });
  pending.apply({ kind: "numbered", nonce: 0 });
  void transmitter.sign(pending, { kind: "legacy", gasPrice: 0n });
  await clock.settle();
  expect(isAccepted).toBe(isKnown);
});

test("logs only 100 of 500 refusals that come one after another", async () => {
  let lines = 0;
  const logger = { ...silentLogger, warn: () => void (lines += 1) };
  const signer = new Signer(testKey("transmitter"));
  const clock = new VirtualClock();
  const transmitter = new Transmitter({
    rpc: new Rpc({ request: () => Promise.reject(refusal("insufficient funds for gas * price + value")) }),
    clock,
    logger,
    signer,
    chainId: 1,
    inFlight: new InFlight(),
    journal: undefined,
    head: () => 0,
    dispatch: (transaction, event) => void transaction.apply(event),
  });
  for (let order = 1; order <= 500; order += 1) {
    const call = { to: signer.address, data: new Uint8Array(0), gas: 50_000, logsExpected: 1 };
    const pending = new PendingTransaction(newTransaction(signer.address, call), { at: 0, order, lookUpAt: 0 });
    pending.apply({ kind: "numbered", nonce: 0 });
    void transmitter.sign(pending, { kind: "legacy", gasPrice: 0n });
    await clock.settle();
  }
  expect(lines).toBe(100);
});
