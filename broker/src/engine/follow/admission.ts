import type { NodeId } from "../../domain/node.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, GroupLease } from "../../ports/coordinator.ts";
import type { GroupRecords } from "../../ports/group-records.ts";
import type { LedgerStartOptions } from "../../ports/ledger.ts";
import type { Member, Membership } from "../cluster/member.ts";
import type { Group } from "../group.ts";
import { pause } from "../../lib/pause.ts";

/** Wait before this node tries again to reserve its signer, in milliseconds. */
const signerTryMs = 1_000;

/** Options of a ledger that must not deploy a registry. */
const mayNotDeploy: LedgerStartOptions = { mayDeploy: () => false };

export interface AdmissionOptions {
  readonly group: Group;
  readonly coordinator: Coordinator;
  readonly member: Member;
  readonly records: Pick<GroupRecords, "findGroupRecord">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Ensures that only one node at a time signs with an address, and that only one node deploys the registry of a chain without one. */
export class Admission {
  readonly #options: AdmissionOptions;
  /** The right to deploy a registry. */
  #lease: GroupLease | undefined;

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  /**
   * Waits for a membership, and reserves the signer. Returns the options with which this node may start the group's ledger: either the registry is known, or
   * this node may deploy it. If `signal` aborts first, the options forbid to deploy. @throws Error with the reason if this node may not start the ledger yet;
   * what coordinator and records throw.
   */
  async toLedger(signal: AbortSignal): Promise<LedgerStartOptions> {
    const { group, coordinator, member, records } = this.#options;
    const membership = await member.membership(signal);
    if (membership === undefined) return mayNotDeploy;
    const taken = await this.#reserveSigner(membership.nodeId);
    if (taken !== undefined) throw new Error(taken);
    if ((await records.findGroupRecord(group.id)) !== undefined) return mayNotDeploy;
    this.#lease = await coordinator.takeLease(group.id, membership.nodeId);
    if (this.#lease === undefined) throw new Error("another node deploys the topic registry on its chain");
    return { mayDeploy: () => membership.isLive() };
  }

  /** Lets another node try after this node could not start the group's ledger. Never rejects. */
  async giveWay(): Promise<void> {
    const { coordinator, logger } = this.#options;
    const lease = this.#lease;
    this.#lease = undefined;
    try {
      if (lease !== undefined) await coordinator.releaseLease(lease);
    } catch (error) {
      logger.debug("group lease not released", { error });
    }
  }

  /** Waits until the signer is reserved for this membership, or `signal` aborts. While another node has the signer, the group accepts no calls. */
  async keepSigner({ nodeId }: Membership, signal: AbortSignal): Promise<void> {
    const { group, clock, logger } = this.#options;
    while (!signal.aborted) {
      try {
        const taken = await this.#reserveSigner(nodeId);
        group.forbid(taken);
        if (taken === undefined) return;
        logger.error("group closed", { reason: taken });
      } catch (error) {
        logger.debug("signer not reserved, trying again", { error });
      }
      await pause(clock, signerTryMs, signal);
    }
  }

  /** Tries to reserve the signer. Returns why this node may not sign; undefined if it may. */
  async #reserveSigner(nodeId: NodeId): Promise<string | undefined> {
    const { coordinator, group } = this.#options;
    const { sender } = group.ledger;
    if (sender === undefined) return undefined;
    const other = await coordinator.reserveSigner({ groupId: group.id, sender }, nodeId);
    return other && `node ${other.address} signs with ${sender} too: give each node a signer of its own`;
  }
}
