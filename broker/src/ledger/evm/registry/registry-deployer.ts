import { toHex } from "@stele/eth/node";
import { BrokerError, isBrokerError } from "@stele/wire";
import { parseTransaction } from "viem/utils";
import type { Address } from "../../../domain/topic.ts";
import type { Logger } from "../../../lib/logger.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import type { JournalWriter } from "../write/journal-writer.ts";
import {
  completeDeployment,
  type Deployment,
  type DeployOptions,
  raiseFee,
  signDeployment,
} from "./deploy-registry.ts";
import { createdAddress } from "./find-registry.ts";

/** How many of a key's first nonces are searched for the deployment of a known registry. */
const ownNoncesMax = 256;

/** Deploys a group's registry, and deploys it again at the same address if the chain lost it. */
export class RegistryDeployer {
  readonly #rpc: Rpc;
  readonly #logger: Logger;
  /** A deployment that is not final yet; an earlier call may have begun it. */
  #underWay: Deployment | undefined;

  constructor(rpc: Rpc, logger: Logger) {
    this.#rpc = rpc;
    this.#logger = logger;
  }

  /**
   * Resolves once a final block contains the registry. Call it again after a failure. The journal gets the deployment before the chain does, so
   * that after a crash this signer sends the same one instead of a second. `place`: see `signDeployment`. @throws BrokerError; RpcFailure.
   */
  async deploy(options: DeployOptions, place: { readonly isRemembered: boolean }): Promise<Address> {
    for (;;) {
      const deployment = await this.#resumeOrSign(options, place);
      if (await this.#complete(deployment, options)) return deployment.address;
      const { nonce } = deployment;
      await this.#drop(nonce, options);
      this.#logger.warn("another transaction used the nonce of the registry's deployment, deploying again", { nonce });
    }
  }

  /** Removes the deployments from the journal. Call it once the group remembers its registry. */
  async forget({ journal, signer }: Pick<DeployOptions, "journal" | "signer">): Promise<void> {
    this.#underWay = undefined;
    const deployments = await findRecorded(journal, signer.address);
    await journal?.remove(deployments.map(({ nonce }) => nonce));
  }

  async #resumeOrSign(options: DeployOptions, place: { readonly isRemembered: boolean }): Promise<Deployment> {
    const { journal, signer } = options;
    const [recorded] = this.#underWay === undefined ? await findRecorded(journal, signer.address) : [];
    const known = this.#underWay ?? recorded;
    const deployment = known === undefined ? await signDeployment(this.#rpc, options, place) : raiseFee(known, options);
    if (deployment !== known) await journal?.record(deployment);
    this.#underWay = deployment;
    return deployment;
  }

  async #drop(nonce: number, { journal }: DeployOptions): Promise<void> {
    this.#underWay = undefined;
    await journal?.remove([nonce]);
  }

  /** Completes a deployment. Drops it if it was refused or reverted, so that the next attempt signs another with the fees of that time. */
  async #complete(deployment: Deployment, options: DeployOptions): Promise<boolean> {
    try {
      return await completeDeployment(this.#rpc, options, deployment);
    } catch (error) {
      if (isBrokerError(error, "transactionFailed")) await this.#drop(deployment.nonce, options);
      throw error;
    }
  }

  /**
   * Deploys again, at the same address, a registry that the chain lost. @throws BrokerError 200205 with the reason if that is impossible; otherwise
   * as `completeDeployment` does.
   */
  async restore(address: Address, options: DeployOptions): Promise<void> {
    const { signer } = options;
    const nonce = findOwnNonce(address, signer.address);
    if (nonce === undefined) throw missing(address, "and this signer did not deploy it");
    if ((await this.#rpc.transactionCount(signer.address, "latest")) > nonce)
      throw missing(address, `and another transaction used the nonce ${nonce} of its deployment`);
    const deployment = await signDeployment(this.#rpc, options, { isRemembered: true, nonce });
    this.#logger.warn("topic registry missing on the chain, deploying it again", { registry: address, nonce });
    if (!(await completeDeployment(this.#rpc, options, deployment)))
      throw missing(address, `and another transaction used the nonce ${nonce} of its deployment`);
    this.#logger.info("topic registry deployed again", { registry: address, nonce });
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
