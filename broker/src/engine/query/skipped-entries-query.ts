import { BrokerError, quote } from "@stele/wire";
import { type Store, skippedEntriesMax } from "../../ports/store.ts";
import type { SkippedEntriesCall, SkippedEntriesResult } from "../broker.ts";
import type { Groups } from "../group.ts";

/** Number of entries in an answer if the call has no limit. */
const entriesDefault = 100;

/** Lists the entries that the index of a group skipped. */
export class SkippedEntriesQuery {
  readonly #groups: Groups;
  readonly #store: Store;

  constructor({ groups, store }: { readonly groups: Groups; readonly store: Store }) {
    this.#groups = groups;
    this.#store = store;
  }

  /** @throws BrokerError 200001 for a wrong limit, 100306 for a malformed and 200211 for an unknown group. */
  async list({ groupId, limit }: SkippedEntriesCall): Promise<SkippedEntriesResult> {
    const { id } = this.#groups.getAny(groupId);
    const atMost = limit === undefined ? entriesDefault : parseLimit(limit);
    return { groupId: id, entries: await this.#store.listSkippedEntries(id, atMost) };
  }
}

function parseLimit(text: string): number {
  const limit = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= skippedEntriesMax) return limit;
  const details = `limit is not an integer from 1 to ${skippedEntriesMax}: ${quote(text)}`;
  throw new BrokerError("parameterInvalid", { details });
}
