import { topicRegistryBytecode } from "@stele/contracts";
import { BrokerError } from "@stele/wire";
import type { Address } from "../../domain/topic.ts";
import type { Clock } from "../../ports/clock.ts";
import { Wakeup } from "../wakeup.ts";
import type { FeePolicy } from "./fee-policy.ts";
import { createdAddress, registryNoncesMax } from "./find-registry.ts";
import { fromHex } from "./hex.ts";
import type { Signer } from "./native-crypto.ts";
import type { Receipt, Rpc } from "./rpc.ts";
import { RpcFailure } from "./rpc-failure.ts";
import { type SignedTransaction, signTransaction } from "./transaction.ts";

const gasMargin = 1.2;
const pauseMs = 50;

export interface DeployOptions {
  readonly signer: Signer;
  readonly fees: FeePolicy;
  readonly chainId: number;
  readonly clock: Clock;
  readonly deadlineMs: number;
  /** Whether its address will be remembered, so that it need not be among the key's first contracts. */
  readonly isRemembered: boolean;
}

/**
 * Creates the registry and waits until it stands.
 * @throws BrokerError 200202 when it was refused or reverted, or when it could not be found again later; 200201.
 */
export async function deployRegistry(rpc: Rpc, options: DeployOptions): Promise<Address> {
  const { signer, fees, chainId } = options;
  const nonce = await rpc.transactionCount(signer.address, "latest");
  if (nonce >= registryNoncesMax && !options.isRemembered) throw keyTooOld(signer.address, nonce);
  const data = fromHex(topicRegistryBytecode);
  const estimate = await rpc.estimateGas({ from: signer.address, data: topicRegistryBytecode });
  const gas = Math.ceil(estimate * gasMargin);
  const signed = signTransaction({ chainId, nonce, fees: fees.current(), gas, to: undefined, data }, signer);
  await sendOnce(rpc, signed);
  const receipt = await waitForReceipt(rpc, signed, options);
  if (!receipt.succeeded)
    throw new BrokerError("transactionFailed", { details: "the registry's deployment was reverted" });
  return createdAddress(signer.address, nonce);
}

/** A start before this one may have sent the same. */
async function sendOnce(rpc: Rpc, { raw }: SignedTransaction): Promise<void> {
  try {
    await rpc.sendRaw(raw);
  } catch (error) {
    if (!(error instanceof RpcFailure) || error.kind !== "already-known") throw error;
  }
}

async function waitForReceipt(rpc: Rpc, { hash }: SignedTransaction, options: DeployOptions): Promise<Receipt> {
  const { clock, deadlineMs } = options;
  const end = clock.now() + deadlineMs;
  while (clock.now() < end) {
    const receipt = await rpc.receipt(hash);
    if (receipt !== undefined) return receipt;
    const pause = new Wakeup();
    clock.after(pauseMs, () => pause.wake());
    await pause.wait(AbortSignal.timeout(deadlineMs));
  }
  throw new BrokerError("transactionTimeout", { details: `the registry's deployment ${hash}` });
}

function keyTooOld(address: Address, nonce: number): BrokerError {
  return new BrokerError("transactionFailed", {
    details: `account ${address} has sent ${nonce} transactions and no registry among its first ${registryNoncesMax}`,
    hints: [
      "Give the registry's address, or a key that has sent nothing yet, so that its registry can be found again.",
    ],
  });
}
