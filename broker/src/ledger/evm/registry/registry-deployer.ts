import { BrokerError, isBrokerError } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { Logger } from "../../../lib/logger.ts";
import { completeDeployment, type Deployment, type DeployOptions, signDeployment } from "./deploy-registry.ts";
import { createdAddress } from "./find-registry.ts";
import type { Rpc } from "../endpoint/rpc.ts";

/** Nonces among which the deployment of a known registry is looked for. */
const ownNoncesMax = 256;

/** Creates a group's registry, and creates it again at the same address where the chain has lost it. */
export class RegistryDeployer {
  readonly #rpc: Rpc;
  readonly #logger: Logger;
  /** One whose final block an earlier call did not live to see. */
  #underWay: Deployment | undefined;

  constructor(rpc: Rpc, logger: Logger) {
    this.#rpc = rpc;
    this.#logger = logger;
  }

  /** Answers once the registry stands in a final block. To be called again after it has failed. @throws BrokerError. */
  async deploy(options: DeployOptions, place: { readonly isRemembered: boolean }): Promise<Address> {
    for (;;) {
      const deployment = this.#underWay ?? (await signDeployment(this.#rpc, options, place));
      this.#underWay = deployment;
      const isDone = await this.#complete(deployment, options);
      this.#underWay = undefined;
      if (isDone) return deployment.address;
      this.#logger.warn("nonce of the registry's deployment used by somebody else, deploying anew", {
        nonce: deployment.nonce,
      });
    }
  }

  /** One that is refused or reverted never comes in: the next attempt signs another, with the fees of then. */
  async #complete(deployment: Deployment, options: DeployOptions): Promise<boolean> {
    try {
      return await completeDeployment(this.#rpc, options, deployment);
    } catch (error) {
      if (isBrokerError(error, "transactionFailed")) this.#underWay = undefined;
      throw error;
    }
  }

  /** Sends the deployment of a registry once more that the chain has lost. @throws BrokerError 200205 with the reason when it cannot be. */
  async restore(address: Address, options: DeployOptions): Promise<void> {
    const { signer } = options;
    const nonce = findOwnNonce(address, signer.address);
    if (nonce === undefined) throw missing(address, "and it is none that this signer has deployed");
    if ((await this.#rpc.transactionCount(signer.address, "latest")) > nonce)
      throw missing(address, `and another transaction has the nonce ${nonce} of its deployment`);
    const deployment = await signDeployment(this.#rpc, options, { isRemembered: true, nonce });
    this.#logger.warn("topic registry is lost, deploying it again", { registry: address, nonce });
    if (!(await completeDeployment(this.#rpc, options, deployment)))
      throw missing(address, `and another transaction has the nonce ${nonce} of its deployment`);
    this.#logger.info("topic registry deployed again", { registry: address, nonce });
  }
}

/** The nonce with which a key has created, or would create, a contract at this address; undefined when it is none of its first. */
export function findOwnNonce(address: Address, signer: Address): number | undefined {
  for (let nonce = 0; nonce < ownNoncesMax; nonce += 1) if (createdAddress(signer, nonce) === address) return nonce;
  return undefined;
}

/** The group's registry, which is known to have been there, is not. */
function missing(address: Address, why: string): BrokerError {
  return new BrokerError("chainUnreachable", {
    details: `the group's topic registry ${address} is no longer on the chain, ${why}`,
    hints: [
      "A reorganisation, or a node that has lost its state, has taken it away. The group comes back by itself when the chain has it again.",
      "If it stays lost, so do its topics and events on this chain: serve a new registry as another group, with another groupId.",
    ],
  });
}
