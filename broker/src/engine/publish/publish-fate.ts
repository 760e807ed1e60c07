import type { Ledger } from "../../ports/ledger.ts";
import type { Store } from "../../ports/store.ts";
import type { PublishKeyRow } from "../../ports/publish-keys.ts";
import type { Clock } from "../../ports/clock.ts";
import { pause } from "../../lib/pause.ts";
import type { IndexProgress } from "../index-progress.ts";
import type { NodesView } from "./nodes-view.ts";

export interface PublishFateOptions {
  readonly ledger: Pick<Ledger, "groupId" | "sender" | "isFinal" | "settled" | "findBlockHash">;
  readonly store: Pick<Store, "findHead">;
  readonly progress: IndexProgress;
  readonly clock: Clock;
  /** Undefined for a single node. */
  readonly nodes?: NodesView | undefined;
}

/**
 * Wait between two queries of a chain that has reorgs, in milliseconds. Long enough that at the second query the ledger knows of each reorg that the
 * index knew of at the first.
 */
const confirmAfterMs = 1_000;

/** Separates the account from the membership in a sender. */
const separator = " ";
/** Stands for a missing membership. A node never sends a publish that it begins without a membership, so other nodes need not wait for it. */
const noMembership = "none";

/** Finds out whether an event that the index does not have can still come. */
export class PublishFate {
  readonly #options: PublishFateOptions;

  constructor(options: PublishFateOptions) {
    this.#options = options;
  }

  /** Account and membership of a publish that begins now: see `PublishKeyRow.sender`. */
  get sender(): string {
    const { ledger, nodes } = this.#options;
    return [ledger.sender ?? "", ...(nodes === undefined ? [] : [nodes.nodeId() ?? noMembership])].join(separator);
  }

  /**
   * For a publish that begins now: the check that the ledger calls right before it sends the transaction. The check returns false once another node
   * may have found that this node is gone. Undefined for a single node.
   */
  startCheck(): (() => boolean) | undefined {
    return this.#options.nodes?.mayStart();
  }

  /**
   * Waits until no transaction of the row's sender can still bring an event, and the index has every event that came. Returns the generation of the index;
   * undefined if `signal` aborts first, if the sender is another live node, or if the outcome stays unknown: the ledger cannot say, the
   * index is rolled back meanwhile, or its newest block is not on the chain.
   */
  async settledGeneration({ sender }: PublishKeyRow, signal: AbortSignal): Promise<number | undefined> {
    const { ledger, clock } = this.#options;
    const [signer = "", nodeId] = sender.split(separator);
    const isOwn = signer === (ledger.sender ?? "");
    if (!isOwn && (await this.#mayStillSend(signer, nodeId))) return undefined;
    const account = isOwn ? undefined : ledger.sender && toAddress(signer);
    const generation = await this.#indexedGeneration(account, signal);
    if (ledger.isFinal || generation === undefined) return generation;
    await pause(clock, confirmAfterMs, signal);
    return this.#indexedGeneration(account, signal);
  }

  /** Whether the index has not been rolled back since `generation`. A rollback may remove an event that a later block then brings back. */
  async isStillGeneration(generation: number): Promise<boolean> {
    const { ledger, store } = this.#options;
    return (await store.findHead(ledger.groupId))?.generation === generation;
  }

  /** Whether another node may still send a publish. Under its next membership, a node sends nothing that it began under an earlier one. */
  async #mayStillSend(signer: string, nodeId: string | undefined): Promise<boolean> {
    const { ledger, nodes } = this.#options;
    if (nodes === undefined) return false;
    const live = nodeId === undefined ? await nodes.listSigners(ledger.groupId) : await nodes.listMembers();
    return live.includes(nodeId ?? signer);
  }

  async #indexedGeneration(account: Ledger["sender"], signal: AbortSignal): Promise<number | undefined> {
    const { ledger, progress, store } = this.#options;
    const upTo = await ledger.settled(account, signal);
    if (upTo === undefined || !(await progress.waitFor(upTo, signal))) return undefined;
    const head = await store.findHead(ledger.groupId);
    if (head === undefined || head.blockNumber < upTo) return undefined; // A rollback is in progress.
    if (ledger.isFinal) return head.generation;
    return (await ledger.findBlockHash(head.blockNumber, signal)) === head.hash ? head.generation : undefined;
  }
}

function toAddress(sender: string): Ledger["sender"] {
  return sender === "" ? undefined : (sender as Ledger["sender"]); // Recorded from `Ledger.sender`.
}
