import type { Address } from "../../domain/topic.ts";
import type { BlockRef } from "../../ports/ledger.ts";

/** Topics kept; the oldest makes room. */
const topicsMax = 65_536;
/** Foreign contracts kept, which write logs under our signatures; the oldest makes room. */
const foreignMax = 4096;
/** Unknown contracts in one answer that the registry is asked about one by one; of more, its list of topics is read. */
const askedMax = 32;

/** How the registry is asked. Neither may be answered by an endpoint that does not know the block yet. */
export interface TopicSource {
  /** Whether an address was a topic after a block, or any later one. */
  isTopic(address: Address, block: BlockRef): Promise<boolean>;
  /** Pages of all topics that have events, at least those up to a block. */
  listTopics(block: BlockRef): AsyncIterable<readonly Address[]>;
}

/** Which addresses are topics of our registry. A topic's address can hold nothing else, ever, so every answer may be kept. */
export class TopicSet {
  readonly #topics = new Set<Address>();
  readonly #foreign = new Set<Address>();
  readonly #source: TopicSource;

  constructor(source: TopicSource) {
    this.#source = source;
  }

  /** Called with every topic that the registry names. */
  add(address: Address): void {
    keep(this.#topics, { address, max: topicsMax });
  }

  /** Pages of all topics that have events, at least those up to the block. */
  list(block: BlockRef): AsyncIterable<readonly Address[]> {
    return this.#source.listTopics(block);
  }

  /** Those of the addresses that are topics after the block. However many a stranger uses, the requests are bounded. */
  async among(addresses: ReadonlySet<Address>, block: BlockRef): Promise<ReadonlySet<Address>> {
    const found = new Set<Address>();
    const unknown = new Set<Address>();
    for (const address of addresses) {
      if (this.#topics.has(address)) found.add(address);
      else if (!this.#foreign.has(address)) unknown.add(address);
    }
    if (unknown.size === 0) return found;
    const learned = unknown.size <= askedMax ? await this.#ask(unknown, block) : await this.#search(unknown, block);
    for (const address of unknown) {
      if (!learned.has(address)) keep(this.#foreign, { address, max: foreignMax });
      else {
        found.add(address);
        this.add(address);
      }
    }
    return found;
  }

  async #ask(addresses: ReadonlySet<Address>, block: BlockRef): Promise<ReadonlySet<Address>> {
    const asked = [...addresses].map(async (address) =>
      (await this.#source.isTopic(address, block)) ? [address] : [],
    );
    return new Set((await Promise.all(asked)).flat());
  }

  async #search(addresses: ReadonlySet<Address>, block: BlockRef): Promise<ReadonlySet<Address>> {
    const found = new Set<Address>();
    for await (const page of this.#source.listTopics(block)) {
      for (const address of page) {
        if (addresses.has(address)) found.add(address);
        else this.add(address);
      }
    }
    return found;
  }
}

function keep(set: Set<Address>, { address, max }: { readonly address: Address; readonly max: number }): void {
  set.add(address);
  const [oldest] = set;
  if (set.size > max && oldest !== undefined) set.delete(oldest);
}
