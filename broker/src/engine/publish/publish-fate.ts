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
  /** Undefined where this process has the store alone. */
  readonly nodes?: NodesView | undefined;
}

/** Wait between two looks at a chain that has reorgs, in milliseconds: a reorg that the index knows is known to the ledger by the second. */
const confirmAfterMs = 1_000;

/** Says whether an event that the index does not have can still come. */
export class PublishFate {
  readonly #options: PublishFateOptions;

  constructor(options: PublishFateOptions) {
    this.#options = options;
  }

  /** The account of this node's transactions; empty if the chain is this node's own. */
  get sender(): string {
    return this.#options.ledger.sender ?? "";
  }

  /**
   * What the ledger asks before it sends a publish that begins now: whether another node can have found by now that this one is gone. Undefined where
   * this process has the store alone.
   */
  startCheck(): (() => boolean) | undefined {
    return this.#options.nodes?.mayStart();
  }

  /**
   * Waits until no transaction of the row's sender can still bring an event, and the index has those that did. False if `signal` aborts first, or
   * another node that is up signs with that account.
   */
  async isSettled({ sender }: PublishKeyRow, signal: AbortSignal): Promise<boolean> {
    const { ledger, clock, nodes } = this.#options;
    const isOwn = sender === this.sender;
    if (!isOwn && nodes !== undefined && (await nodes.listSigners(ledger.groupId)).includes(sender)) return false;
    const account = isOwn ? undefined : ledger.sender && toAddress(sender);
    if (!(await this.#isIndexed(account, signal))) return false;
    if (ledger.isFinal) return true;
    await pause(clock, confirmAfterMs, signal);
    return this.#isIndexed(account, signal);
  }

  async #isIndexed(account: Ledger["sender"], signal: AbortSignal): Promise<boolean> {
    const { ledger, progress, store } = this.#options;
    const upTo = await ledger.settled(account, signal);
    if (upTo === undefined || !(await progress.waitFor(upTo, signal))) return false;
    if (ledger.isFinal) return true;
    const head = await store.findHead(ledger.groupId);
    return head !== undefined && (await ledger.findBlockHash(head.blockNumber, signal)) === head.hash;
  }
}

function toAddress(sender: string): Ledger["sender"] {
  return sender === "" ? undefined : (sender as Ledger["sender"]); // A ledger's own, as it was recorded.
}
