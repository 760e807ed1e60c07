import type { NodeId } from "../../domain/node.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, GroupLease } from "../../ports/coordinator.ts";
import type { GroupRecords } from "../../ports/group-records.ts";
import type { LedgerStartOptions } from "../../ports/ledger.ts";
import type { Member, Membership } from "../cluster/member.ts";
import type { Group } from "../group.ts";
import { pause } from "../../lib/pause.ts";

/** Wait between two tries to keep a signer that another node has, in milliseconds. */
const signerTryMs = 1_000;

/** A registry that is known is not made. */
const nobody: LedgerStartOptions = { mayDeploy: () => false };

export interface AdmissionParts {
  readonly group: Group;
  readonly coordinator: Coordinator;
  readonly member: Member;
  readonly records: Pick<GroupRecords, "findGroupRecord">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Lets one of the nodes that share a store go first where two at once would do harm: in signing with an address, and on a chain without a registry. */
export class Admission {
  readonly #parts: AdmissionParts;
  /** Taken to deploy a registry. */
  #lease: GroupLease | undefined;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
  }

  /**
   * Answers when this node may start the group's ledger: its signer is kept for it, and the group's registry is known, or this node's to
   * deploy. Also when `signal` aborts. @throws Error why it may not as yet.
   */
  async toLedger(signal: AbortSignal): Promise<LedgerStartOptions> {
    const { group, coordinator, member, records } = this.#parts;
    const membership = await member.membership(signal);
    if (membership === undefined) return nobody;
    const taken = await this.#findTaker(membership.nodeId);
    if (taken !== undefined) throw new Error(taken);
    if ((await records.findGroupRecord(group.id)) !== undefined) return nobody;
    this.#lease = await coordinator.takeLease(group.id, membership.nodeId);
    if (this.#lease === undefined)
      throw new Error("another node is the first on its chain, and makes the topic registry");
    return { mayDeploy: () => membership.isLive() };
  }

  /** When this node could not start the group's ledger, another one may try. Never rejects. */
  async giveWay(): Promise<void> {
    const { coordinator, logger } = this.#parts;
    const lease = this.#lease;
    this.#lease = undefined;
    try {
      if (lease !== undefined) await coordinator.releaseLease(lease);
    } catch (error) {
      logger.debug("group lease not released", { error });
    }
  }

  /** Answers when the signer is kept for this membership, or `signal` aborts; where another node has it, the group takes no calls until then. */
  async keepSigner({ nodeId }: Membership, signal: AbortSignal): Promise<void> {
    const { group, clock, logger } = this.#parts;
    while (!signal.aborted) {
      try {
        const taken = await this.#findTaker(nodeId);
        group.forbid(taken);
        if (taken === undefined) return;
        logger.error("group closed", { reason: taken });
      } catch (error) {
        logger.debug("signer not kept", { error });
      }
      await pause(clock, signerTryMs, signal);
    }
  }

  /** Why this node may not sign. */
  async #findTaker(nodeId: NodeId): Promise<string | undefined> {
    const { coordinator, group } = this.#parts;
    const { sender } = group.ledger;
    if (sender === undefined) return undefined;
    const other = await coordinator.reserveSigner({ groupId: group.id, sender }, nodeId);
    return other && `node ${other.address} signs with ${sender} too: give each node a signer of its own`;
  }
}
