import { topicRegistryBytecode } from "@stele/contracts";
import { fromHex, type Signer, signTransaction, toHex } from "@stele/eth/node";
import { BrokerError } from "@stele/wire";
import { parseTransaction } from "viem/utils";
import type { Address } from "../../../domain/topic.ts";
import { backoffDelayMs } from "../../../lib/backoff.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { SignedVariant } from "../../../ports/journal.ts";
import type { Receipt, Rpc } from "../endpoint/rpc.ts";
import { isUnanswered, RpcFailure, toBrokerError } from "../endpoint/rpc-failure.ts";
import type { FinalityPolicy } from "../read/finality.ts";
import type { FeePolicy } from "../write/fee-policy.ts";
import type { JournalWriter } from "../write/journal-writer.ts";
import { toFees } from "../write/recovered-transaction.ts";
import { createdAddress, registryNoncesMax } from "./find-registry.ts";

const gasMargin = 1.2;
/** Bounds of the pause between two checks of a deployment, in milliseconds; it doubles with each: some endpoints allow few requests per second. */
const pauseLimits = { delayMsMin: 50, delayMsMax: 500 };
/** Checks between two sends of a deployment that no block contains. */
const looksPerSend = 10;
/** A deployment whose nonce is used counts as lost after this many checks without a receipt: one endpoint may lag. */
const lostLooksMax = 10;

export interface DeployOptions {
  readonly signer: Signer;
  readonly fees: FeePolicy;
  readonly finality: FinalityPolicy;
  readonly chainId: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly deadlineMs: number;
  /** Undefined on the embedded chain, where a start finds the registry by the signer's nonces. */
  readonly journal: JournalWriter | undefined;
}

/** A signed deployment. A later attempt resumes it if its final block did not come in time. */
export interface Deployment {
  readonly nonce: number;
  readonly address: Address;
  /** All versions, which share the nonce and so the address. */
  readonly variants: readonly [newest: SignedVariant, ...older: SignedVariant[]];
}

export interface DeploymentPlace {
  /** Whether the group remembers the registry's address. */
  readonly isRemembered: boolean;
  /** The next one of the chain if undefined. */
  readonly nonce?: number | undefined;
}

/**
 * Signs the transaction that creates the registry. If the group does not remember the registry's address, only the key's first nonces may create
 * it, so that a later start finds it. @throws BrokerError 200202 if the key has used those; RpcFailure.
 */
export async function signDeployment(rpc: Rpc, options: DeployOptions, place: DeploymentPlace): Promise<Deployment> {
  const { signer, fees, chainId } = options;
  const nonce = place.nonce ?? (await rpc.transactionCount(signer.address, "latest"));
  if (nonce >= registryNoncesMax && !place.isRemembered) throw keyTooOld(signer.address, nonce);
  const data = fromHex(topicRegistryBytecode);
  const estimate = await rpc.estimateGas({ from: signer.address, data: topicRegistryBytecode });
  const gas = Math.ceil(estimate * gasMargin);
  const signed = signTransaction({ chainId, nonce, fees: fees.current(), gas, to: undefined, data }, signer);
  return { variants: [signed], nonce, address: createdAddress(signer.address, nonce) };
}

/** Adds a version with a higher price if the chain's price has risen above that of the newest version, which no block would include now. */
export function raiseFee(deployment: Deployment, { signer, fees, chainId }: DeployOptions): Deployment {
  const { nonce, variants } = deployment;
  const { data = "0x", gas = 0n, ...prices } = parseTransaction(toHex(variants[0].raw));
  const old = toFees(prices);
  const raised = fees.covers(old) ? undefined : fees.raised(old);
  if (raised === undefined) return deployment;
  const request = { chainId, nonce, fees: raised, gas: Number(gas), to: undefined, data: fromHex(data) };
  return { ...deployment, variants: [signTransaction(request, signer), ...variants] };
}

/**
 * Sends a deployment, again if the chain lost it, and waits until a final block contains it. Returns false if another transaction used its nonce.
 * @throws BrokerError 200202 if it was refused or reverted; 200205 if it is not final in time; RpcFailure if a request fails.
 */
export async function completeDeployment(rpc: Rpc, options: DeployOptions, deployment: Deployment): Promise<boolean> {
  const { clock, deadlineMs, finality, signer } = options;
  const end = clock.monotonic() + deadlineMs;
  let place = "no block holds it";
  let lostLooks = 0;
  let isNonceUsed = false;
  // If the nonce is used, finishes all checks, even after the deadline. Otherwise each attempt with a short deadline would begin to count anew, and none would
  // decide.
  for (let look = 0; isNonceUsed || clock.monotonic() < end; look += 1) {
    const receipt = await findReceipt(rpc, deployment);
    if (receipt?.succeeded === false)
      throw new BrokerError("transactionFailed", { details: "the registry's deployment was reverted" });
    isNonceUsed = receipt === undefined && (await rpc.transactionCount(signer.address, "latest")) > deployment.nonce;
    if (receipt !== undefined) {
      const final = (await finality.finalAt(await rpc.header("latest"))).number;
      if (receipt.blockNumber <= final) return true;
      place = `it is in block ${receipt.blockNumber}, and the newest final block is ${Math.max(0, final)}`;
    } else if (isNonceUsed) {
      lostLooks += 1;
      if (lostLooks >= lostLooksMax) return false;
    } else if (look % looksPerSend === 0) await sendOnce(rpc, deployment);
    await pause(clock, backoffDelayMs(look + 1, { ...pauseLimits, fraction: 0 }));
  }
  throw new BrokerError("chainUnreachable", {
    details: `the registry's deployment ${deployment.variants[0].hash} is not final yet: ${place}`,
  });
}

async function findReceipt(rpc: Rpc, { variants }: Deployment): Promise<Receipt | undefined> {
  for (const { hash } of variants) {
    const receipt = await rpc.receipt(hash, { mayLackLogs: true });
    if (receipt !== undefined) return receipt;
  }
  return undefined;
}

/**
 * Sends the newest version, then the older ones until the endpoint accepts or has one. An earlier start may have sent the same deployment, so a
 * known transaction is not a failure. The next check shows whether another transaction used the nonce. @throws BrokerError 200202 if all versions are refused.
 */
async function sendOnce(rpc: Rpc, { variants }: Deployment): Promise<void> {
  let refusal: RpcFailure | undefined;
  for (const { raw } of variants) {
    const failure = await findRefusal(rpc, raw);
    if (failure === undefined) return;
    refusal ??= failure;
  }
  if (refusal !== undefined) throw refused(refusal);
}

/** Sends a version. Returns why the endpoint refuses it; undefined if the endpoint accepts or has it, or the chain has used its nonce. */
async function findRefusal(rpc: Rpc, raw: Uint8Array): Promise<RpcFailure | undefined> {
  try {
    await rpc.sendRaw(raw);
    return undefined;
  } catch (error) {
    if (!(error instanceof RpcFailure) || isUnanswered(error)) throw error;
    return ["already-known", "nonce-too-low"].includes(error.kind) ? undefined : error;
  }
}

function refused(failure: RpcFailure): BrokerError {
  return new BrokerError("transactionFailed", {
    details: `the registry's deployment was refused: ${failure.message}`,
    hints: toBrokerError(failure).hints,
    cause: failure,
  });
}

function keyTooOld(address: Address, nonce: number): BrokerError {
  return new BrokerError("transactionFailed", {
    details: `account ${address} has sent ${nonce} transactions, and a later start finds only a registry that one of the first ${registryNoncesMax} created`,
    hints: [
      "Give the registry's address, or a key that has sent nothing yet, so that its registry can be found again.",
    ],
  });
}
