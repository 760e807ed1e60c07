import { toHex } from "@stele/eth/node";
import { BrokerError, isBrokerError } from "@stele/wire";
import { parseTransaction } from "viem/utils";
import type { Address } from "../../../domain/topic.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import type { JournalWriter } from "../write/journal-writer.ts";
import {
  completeDeployment,
  type Deployment,
  type DeploymentPlace,
  type DeployOptions,
  raiseFee,
  signDeployment,
} from "./deploy-registry.ts";
import { createdAddress } from "./find-registry.ts";

/** How many of a key's first nonces are searched for the deployment of a known registry. */
const ownNoncesMax = 256;

/**
 * Deploys a group's registry; resolves once a final block contains it, with undefined if another transaction used its nonce. The journal gets the deployment
 * before the chain does. So a call after a failure resumes that deployment: this signer sends another one only if the first was refused or reverted, if another
 * transaction used its nonce, or if `place` names another nonce. `place`: see `signDeployment`. @throws BrokerError; RpcFailure.
 */
export async function deployRegistry(
  rpc: Rpc,
  options: DeployOptions,
  place: DeploymentPlace,
): Promise<Address | undefined> {
  const { journal, logger } = options;
  const deployment = await resumeOrSign(rpc, options, place);
  const { nonce, address } = deployment;
  if (await complete(rpc, options, deployment)) return address;
  await journal?.remove([nonce]);
  logger.warn("another transaction used the nonce of the registry's deployment", { nonce });
  return undefined;
}

/** Removes the deployments from the journal. Call it once the group remembers its registry. */
export async function forgetDeployments({ journal, signer }: Pick<DeployOptions, "journal" | "signer">): Promise<void> {
  const deployments = await findRecorded(journal, signer.address);
  await journal?.remove(deployments.map(({ nonce }) => nonce));
}

/**
 * Deploys again, at the same address, a registry that the chain lost. @throws BrokerError 200205 with the reason if that is impossible; otherwise
 * as `deployRegistry` does.
 */
export async function restoreRegistry(rpc: Rpc, options: DeployOptions, address: Address): Promise<void> {
  const { signer, logger } = options;
  const nonce = findOwnNonce(address, signer.address);
  if (nonce === undefined) throw missing(address, "and this signer did not deploy it");
  if ((await rpc.transactionCount(signer.address, "latest")) > nonce)
    throw missing(address, `and another transaction used the nonce ${nonce} of its deployment`);
  logger.warn("topic registry missing on the chain, deploying it again", { registry: address, nonce });
  if ((await deployRegistry(rpc, options, { isRemembered: true, nonce })) !== address)
    throw missing(address, `and another transaction used the nonce ${nonce} of its deployment`);
  logger.info("topic registry deployed again", { registry: address, nonce });
}

async function resumeOrSign(rpc: Rpc, options: DeployOptions, place: DeploymentPlace): Promise<Deployment> {
  const { journal, signer } = options;
  const recordings = await findRecorded(journal, signer.address);
  const recorded = recordings.find(({ nonce }) => place.nonce === undefined || nonce === place.nonce);
  const deployment = recorded === undefined ? await signDeployment(rpc, options, place) : raiseFee(recorded, options);
  if (deployment !== recorded) await journal?.record(deployment);
  return deployment;
}

/** Completes a deployment. Drops it if it was refused or reverted: the next attempt then signs a new one with the fees of that time. */
async function complete(rpc: Rpc, options: DeployOptions, deployment: Deployment): Promise<boolean> {
  try {
    return await completeDeployment(rpc, options, deployment);
  } catch (error) {
    if (isBrokerError(error, "transactionFailed")) await options.journal?.remove([deployment.nonce]);
    throw error;
  }
}

/** Deployments in the journal, lowest nonce first: the transactions without a recipient. */
async function findRecorded(journal: JournalWriter | undefined, account: Address): Promise<readonly Deployment[]> {
  const entries = (await journal?.list()) ?? [];
  return entries.flatMap(({ nonce, variants }) => {
    const [newest, ...older] = variants;
    if (newest === undefined || parseTransaction(toHex(newest.raw)).to) return [];
    return [{ variants: [newest, ...older], nonce, address: createdAddress(account, nonce) }];
  });
}

/** The nonce with which a key created, or would create, a contract at this address; undefined if it is not among the first `ownNoncesMax`. */
export function findOwnNonce(address: Address, signer: Address): number | undefined {
  for (let nonce = 0; nonce < ownNoncesMax; nonce += 1) if (createdAddress(signer, nonce) === address) return nonce;
  return undefined;
}

/** The error for a registry that was on the chain and is missing now. */
export function missing(address: Address, why?: string): BrokerError {
  const text = `the group's topic registry ${address} is not on the chain`;
  return new BrokerError("chainUnreachable", {
    details: why === undefined ? text : `${text}, ${why}`,
    hints: missingHints,
  });
}

const missingHints = [
  "A reorg, or a node that lost its state, removed it. The group recovers by itself when the chain has it again",
  "If it stays missing, restart the node whose signer deployed it with the group's registry set to deploy: it deploys the registry at the same address",
  "If that fails, serve a new registry as another group with another groupId",
];
