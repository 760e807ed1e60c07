import { randomBytes } from "node:crypto";
import { type Hex, toHex } from "@stele/eth/node";
import type { Chain } from "../chain/chain.ts";
import { Lru } from "../lib/lru.ts";
import { FILTERS_MAX } from "../limits.ts";
import { ProviderRpcError, RPC_ERROR_CODES, serverError } from "../rpc-error.ts";
import { findLogs, type LogQuery } from "./log-filter.ts";

interface Filter {
  /** Undefined for a filter of new blocks. */
  readonly query: LogQuery | undefined;
  /** The first block that no answer has covered yet. */
  next: bigint;
  /** How many blocks the next search may read: fewer after a search that found too much or took too long. */
  blocksMax: bigint;
}

interface Changes {
  readonly changes: unknown[];
  /** The last block that the search covered. */
  readonly last: bigint;
}

const ID_BYTES = 16;
const NO_LIMIT = 2n ** 64n;

/** Filters that clients poll. Each remembers the last block of its newest answer. */
export class Filters {
  readonly #filters = new Lru<string, Filter>({ entriesMax: FILTERS_MAX });
  readonly #chain: Chain;

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  add(query: LogQuery | undefined): Hex {
    const id = toHex(randomBytes(ID_BYTES));
    this.#filters.set(id, { query, next: this.#chain.head.header.number + 1n, blocksMax: NO_LIMIT });
    return id;
  }

  remove(id: string): boolean {
    const isKnown = this.#filters.get(id) !== undefined;
    this.#filters.delete(id);
    return isKnown;
  }

  /** Returns what is new since the last answer. If that is too much for one answer, the answer ends at an earlier block, and the next one continues there. */
  changes(id: string): unknown[] {
    const filter = this.#get(id);
    const { query, next } = filter;
    const to = this.#chain.head.header.number;
    if (next > to) return [];
    const { changes, last } = query === undefined ? this.#hashes(next, to) : this.#logs(filter, query, to);
    filter.next = last + 1n;
    return changes;
  }

  logs(id: string): unknown[] {
    const { query } = this.#get(id);
    if (query === undefined) throw serverError("filter not found");
    return findLogs(this.#chain, query);
  }

  #get(id: string): Filter {
    const filter = this.#filters.get(id);
    if (filter === undefined) throw serverError("filter not found");
    return filter;
  }

  #logs(filter: Filter, query: LogQuery, to: bigint): Changes {
    const from = filter.next;
    const first = from > query.from ? from : query.from;
    const endsAt = performance.now() + this.#chain.options.callTimeMsMax;
    for (;;) {
      const end = from + filter.blocksMax - 1n;
      const last = end < to ? end : to;
      try {
        const changes = findLogs(this.#chain, { ...query, from: first, to: last < query.to ? last : query.to });
        filter.blocksMax = last === to ? NO_LIMIT : filter.blocksMax * 2n;
        return { changes, last };
      } catch (error) {
        const isTooMuch = error instanceof ProviderRpcError && error.code === RPC_ERROR_CODES.limitExceeded;
        if (!isTooMuch || last === from) throw error;
        filter.blocksMax = (last - from + 1n) / 2n;
        // New blocks wait while a poll searches, so all its searches share the time limit of one. The next poll starts with the smaller range.
        if (performance.now() > endsAt) throw error;
      }
    }
  }

  #hashes(from: bigint, to: bigint): Changes {
    const hashes: Hex[] = [];
    for (let number = from; number <= to; number += 1n) {
      hashes.push(toHex(this.#chain.blocks.getHead(number).hash));
    }
    return { changes: hashes, last: to };
  }
}
