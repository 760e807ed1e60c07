import { BrokerError, quote } from "@stele/wire";
import { BriefCache } from "../../lib/brief-cache.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LedgerInfo } from "../../ports/ledger-info.ts";
import { type SkippedEntry, skippedEntriesMax, type Store } from "../../ports/store.ts";
import type { GroupHealth } from "../broker.ts";
import type { Group, Groups } from "../group.ts";
import { Deadline } from "../time.ts";
import type { GroupView, Page, PageCall } from "./calls.ts";

/** How long the information of a ledger is cached, in milliseconds. */
const infoAgeMsMax = 5_000;

/** How long the chain may take to answer with the information of a ledger, in milliseconds. */
const infoTimeoutMs = 1_000;

export interface GroupFinderOptions {
  readonly store: Pick<Store, "listSkippedEntries">;
  readonly groups: Groups;
  readonly clock: Clock;
  readonly groupHealth: () => readonly GroupHealth[];
}

/** Shows the groups with their chains. */
export class GroupFinder {
  readonly #options: GroupFinderOptions;
  readonly #ledgerInfos: BriefCache<LedgerInfo | undefined>;

  constructor(options: GroupFinderOptions) {
    this.#options = options;
    const { clock, groups } = options;
    this.#ledgerInfos = new BriefCache({
      now: () => clock.monotonic(),
      ageMsMax: infoAgeMsMax,
      entriesMax: groups.all.length,
    });
  }

  /** Lists groups in the order of the configuration; `next` is the last groupId of the page. @throws BrokerError 200001. */
  async list({ after, limit }: PageCall): Promise<Page<GroupView>> {
    const all = this.#options.groupHealth();
    const start = after === undefined ? 0 : all.findIndex(({ groupId }) => groupId === after) + 1;
    if (after !== undefined && start === 0) throw strangeCursor(after);
    const page = all.slice(start, start + limit);
    const items = await Promise.all(page.map((health) => this.#view(health)));
    return { items, next: start + limit < all.length ? page.at(-1)?.groupId : undefined };
  }

  /** Lists the newest entries first. @throws BrokerError 200001 for the cursor; 100306, 200211 for the group. */
  async listSkippedEntries(groupId: string, { after, limit }: PageCall): Promise<Page<SkippedEntry>> {
    const { id } = this.#options.groups.getAny(groupId);
    const below = after === undefined ? undefined : toPlace(after);
    for (let atMost = limit + 1; ; atMost = Math.min(4 * atMost, skippedEntriesMax)) {
      const entries = await this.#options.store.listSkippedEntries(id, atMost);
      const found = below === undefined ? entries : entries.filter((entry) => isBelow(entry, below));
      if (found.length <= limit && entries.length === atMost && atMost < skippedEntriesMax) continue;
      const items = found.slice(0, limit);
      return { items, next: found.length > limit ? placeOf(items.at(-1)) : undefined };
    }
  }

  async #view(health: GroupHealth): Promise<GroupView> {
    const group = this.#options.groups.getAny(health.groupId);
    const [head, ledgerInfo] = await Promise.all([group.findHead(), this.#findLedgerInfo(group)]);
    return { ...health, ledgerInfo, rollBacks: head?.generation ?? 0, rollBackHistory: group.rollBacks.list() };
  }

  /** Undefined if the chain does not answer in time. */
  #findLedgerInfo({ id, ledger }: Group): Promise<LedgerInfo | undefined> {
    return this.#ledgerInfos.read(id, async () => {
      using deadline = new Deadline(this.#options.clock, infoTimeoutMs);
      return untilAborted(ledger.readInfo(), deadline.signal);
    });
  }
}

/** The block of an entry, and the index of its log. */
type EntryPlace = Pick<SkippedEntry, "blockNumber" | "logIndex">;

function isBelow({ blockNumber, logIndex }: SkippedEntry, place: EntryPlace): boolean {
  if (blockNumber !== place.blockNumber) return blockNumber < place.blockNumber;
  return logIndex < place.logIndex;
}

function placeOf(entry: EntryPlace | undefined): string | undefined {
  return entry && `${entry.blockNumber}-${entry.logIndex}`;
}

function toPlace(text: string): EntryPlace {
  const found = /^(\d{1,10})-(\d{1,10})$/.exec(text);
  if (found !== null) return { blockNumber: Number(found[1]), logIndex: Number(found[2]) };
  throw strangeCursor(text);
}

function strangeCursor(text: string): BrokerError {
  return new BrokerError("parameterInvalid", { details: `"cursor" is not from this list: ${quote(text)}` });
}
