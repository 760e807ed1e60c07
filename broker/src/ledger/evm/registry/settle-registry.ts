import { BrokerError } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { GroupRecord, WriterSet } from "../../../ports/group-records.ts";
import type { DeployOptions } from "./deploy-registry.ts";
import { findRegistry, isRegistry } from "./find-registry.ts";
import { deployRegistry, missing, restoreRegistry } from "./registry-deployer.ts";
import type { ChainIdentity, Rpc } from "../endpoint/rpc.ts";

/** Stores the chain and the registry of one group between starts. */
export interface GroupMemory {
  find(): Promise<GroupRecord | undefined>;
  /** Saves the first record; returns the saved one. */
  save(record: GroupRecord): Promise<GroupRecord>;
  /** Saves a set of writers unless the group has one other than `former`; returns the saved one. */
  saveWriters?(writers: WriterSet, former: WriterSet | undefined): Promise<WriterSet>;
  /** The signers of the group's live nodes. */
  listSigners?(): Promise<readonly Address[]>;
  /** The newest block of the index; a shorter chain lost blocks, or lags. */
  findIndexedBlock?(): Promise<number | undefined>;
}

/** Stores nothing, for a chain that ends with this process. */
export const noMemory: GroupMemory = { find: async () => undefined, save: async (record) => record };

/**
 * The registry for a group that remembers none: the one at an address, or a new one (`deploy`). If undefined, the one that the signer deployed, or a
 * new one if there is none.
 */
export type RegistryChoice = Address | "deploy" | undefined;

export interface SettleOptions extends DeployOptions {
  readonly memory: GroupMemory;
  readonly remembered: GroupRecord | undefined;
  readonly choice: RegistryChoice;
  /** Whether this node may deploy the group's registry if there is none. */
  readonly mayDeploy: () => boolean;
  /** Whether this node may sign transactions at all. */
  readonly maySign: boolean;
  readonly chain: ChainIdentity;
}

/**
 * Finds the group's registry or has it deployed, and remembers it with its chain.
 * @throws BrokerError 200205 if the registry is not the remembered one, or is missing, not final or another node's to deploy; RpcFailure;
 * otherwise as `deployRegistry` and `restoreRegistry` do.
 */
export async function settleRegistry(rpc: Rpc, options: SettleOptions): Promise<Address> {
  const { remembered } = options;
  const address =
    remembered === undefined ? await firstRegistry(rpc, options) : sameRegistry(remembered, options.choice);
  if (!(await isRegistry(rpc, { address, from: options.signer.address }))) {
    if (remembered === undefined) throw noRegistry(address);
    await restore(rpc, address, options);
  }
  if (remembered === undefined) {
    await checkIsFinal(rpc, address, options);
    await remember(address, options);
  }
  options.logger.info("chain connected", {
    chainId: options.chain.chainId,
    registry: address,
    signer: options.signer.address,
  });
  return address;
}

/** @throws BrokerError 200205 if another node remembered another registry first; the next start uses that one. */
async function remember(registryAddress: Address, { memory, chain }: SettleOptions): Promise<void> {
  const kept = await memory.save({ ...chain, registryAddress });
  if (kept.registryAddress === registryAddress) return;
  throw new BrokerError("chainUnreachable", {
    details: `another node has recorded the registry ${kept.registryAddress} for this group, and this node found or deployed ${registryAddress}: its next start uses the recorded one`,
  });
}

/** Deploys a lost registry again if the operator chose `deploy`. Not while the chain is shorter than the index: it may catch up and then have the registry. */
async function restore(rpc: Rpc, address: Address, options: SettleOptions): Promise<void> {
  const indexed = (await options.memory.findIndexedBlock?.()) ?? -1;
  const head = await rpc.header("latest");
  if (head.number < indexed) throw new BrokerError("chainUnreachable", { details: behind(head.number, indexed) });
  if (options.choice !== "deploy") throw missing(address);
  if (!options.maySign) throw notActivated();
  await restoreRegistry(rpc, options, address);
}

/** Only a registry in a final block is remembered, since a reorg may remove others. @throws BrokerError 200205 if no final block has it. */
async function checkIsFinal(rpc: Rpc, address: Address, { finality }: SettleOptions): Promise<void> {
  const head = await rpc.header("latest");
  const { number } = await finality.finalAt(head);
  if (number === head.number || (number >= 0 && (await rpc.code(address, number)).length > 2)) return;
  throw new BrokerError("chainUnreachable", {
    details: `the topic registry ${address} is in no final block yet: the newest final block is ${Math.max(0, number)} of ${head.number}`,
  });
}

/** The text of an error or outage: the chain is shorter than the blocks already read. */
export function behind(head: number, indexed: number): string {
  return `the chain is at block ${head}, the index at ${indexed}: the node may be behind or have lost its state`;
}

async function firstRegistry(rpc: Rpc, options: SettleOptions): Promise<Address> {
  const { choice, memory, logger, mayDeploy, maySign } = options;
  const signer = options.signer.address;
  if (choice !== undefined && choice !== "deploy") return lowerCase(choice);
  // If another transaction used the nonce, searches again: a chain node that is still syncing may not have counted the deployment of an earlier registry.
  while (mayDeploy()) {
    const found = choice === undefined ? await findRegistry(rpc, signer) : undefined;
    if (found?.address !== undefined) return found.address;
    if (!maySign) throw notActivated();
    // Uses the nonce at which the search ended. A second count could be higher, and skip the nonce of an earlier registry that the search did not see.
    const place = { isRemembered: memory !== noMemory, nonce: found?.used };
    const address = await deployRegistry(rpc, options, place);
    if (address === undefined) continue;
    logger.info("topic registry deployed", { registry: address, signer });
    return address;
  }
  throw noneYet();
}

function sameRegistry({ registryAddress }: GroupRecord, choice: RegistryChoice): Address {
  if (choice !== undefined && choice !== "deploy" && lowerCase(choice) !== registryAddress) {
    throw new BrokerError("chainUnreachable", {
      details: `the group is on the registry ${registryAddress}, and ${lowerCase(choice)} is configured`,
      hints: ["Another registry has other topics: serve it as another group."],
    });
  }
  return registryAddress;
}

export function notActivated(): BrokerError {
  const details = "this broker was restored from a backup, and the original may still use its key: run stele activate";
  return new BrokerError("chainUnreachable", { details });
}

function noneYet(): BrokerError {
  return new BrokerError("chainUnreachable", {
    details: "the group has no topic registry yet, and the node that follows its chain is the one to deploy it",
  });
}

function noRegistry(address: Address): BrokerError {
  return new BrokerError("chainUnreachable", {
    details: `there is no topic registry at ${address} on this chain`,
    hints: [
      "Check the registry's address and the chain's endpoint, or leave the address out to deploy a new registry.",
    ],
  });
}

function lowerCase(address: Address): Address {
  return address.toLowerCase() as Address; // An address in lower case.
}
