import { randomBytes } from "node:crypto";
import { type Hex, toHex } from "@stele/eth/node";
import type { Chain } from "../chain/chain.ts";
import { Lru } from "../lib/lru.ts";
import { FILTERS_MAX } from "../limits.ts";
import { serverError } from "../rpc-error.ts";
import { findLogs, type LogQuery } from "./log-filter.ts";

interface Filter {
  /** Undefined for a filter of new blocks. */
  readonly query: LogQuery | undefined;
  /** The first block that no answer has covered yet. */
  next: bigint;
}

const ID_BYTES = 16;

/** Polling filters: each remembers up to which block it has answered. */
export class Filters {
  readonly #filters = new Lru<string, Filter>({ entriesMax: FILTERS_MAX });
  readonly #chain: Chain;

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  add(query: LogQuery | undefined): Hex {
    const id = toHex(randomBytes(ID_BYTES));
    this.#filters.set(id, { query, next: this.#chain.head.header.number + 1n });
    return id;
  }

  remove(id: string): boolean {
    const isKnown = this.#filters.get(id) !== undefined;
    this.#filters.delete(id);
    return isKnown;
  }

  changes(id: string): unknown[] {
    const filter = this.#get(id);
    const from = filter.next;
    const to = this.#chain.head.header.number;
    if (from > to) return [];
    const changes = filter.query === undefined ? this.#hashes(from, to) : this.#logs(filter.query, from, to);
    filter.next = to + 1n;
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

  #logs(query: LogQuery, from: bigint, to: bigint): unknown[] {
    return findLogs(this.#chain, {
      ...query,
      from: from > query.from ? from : query.from,
      to: to < query.to ? to : query.to,
    });
  }

  #hashes(from: bigint, to: bigint): Hex[] {
    const hashes: Hex[] = [];
    for (let number = from; number <= to; number += 1n) {
      const head = this.#chain.blocks.findHead(number);
      if (head !== undefined) hashes.push(toHex(head.hash));
    }
    return hashes;
  }
}
