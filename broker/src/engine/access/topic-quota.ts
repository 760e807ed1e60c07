import type { GroupId } from "../../domain/group-id.ts";
import { prefixesOf } from "../../domain/tenant-names.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { PublishOutcome } from "../broker.ts";
import type { Caller } from "./caller.ts";
import { overTopicQuota, type Quotas } from "./quotas.ts";

export interface TopicQuotaOptions {
  /** Undefined if there are no quotas. */
  readonly quotas: Quotas | undefined;
  readonly store: Pick<Store, "countTopics">;
  readonly groupIds: readonly GroupId[];
  readonly clock: Pick<Clock, "after">;
}

/** A topic that is being opened and is not in the index yet. */
export interface Opening {
  readonly groupId: GroupId;
  readonly name: string;
}

/** Ends the count of an opening. Call it once the topic is in the index or was not opened (`known`), or if the chain may still open it (`unknown`). */
type EndOpening = (fate: "known" | "unknown") => void;

/** How long an opening with unknown outcome is counted, in milliseconds. By then the index has the topic, or the chain has dropped the transaction. */
export const unknownCountedMs = 600_000;

const nothing: EndOpening = () => {};

/** The topic that a publish may open, counted until the publish has settled. */
export class CountedOpening {
  #end = nothing;

  async begin(reserving: Promise<EndOpening>): Promise<void> {
    this.#end = await reserving;
  }

  settled({ status }: Pick<PublishOutcome, "status">): void {
    this.#end(status === "TIMEOUT" ? "unknown" : "known");
  }
}

/**
 * Limits the topics of each tenant: those in the index, and those that this node is opening. Nodes that open topics of one tenant at the same moment may
 * together exceed the quota.
 */
export class TopicQuota {
  readonly #options: TopicQuotaOptions;
  readonly #locks = new KeyedMutex<string>();
  readonly #openings = new Map<string, Set<Opening>>();

  constructor(options: TopicQuotaOptions) {
    this.#options = options;
  }

  /** Counts a topic that is about to be opened, until the returned function is called. @throws BrokerError 200301. */
  async reserve({ principal }: Pick<Caller, "principal">, opening: Opening): Promise<EndOpening> {
    const tenant = principal.kind === "known" ? principal.tenant : undefined;
    const max = tenant === undefined ? undefined : this.#options.quotas?.topicsMax(tenant);
    if (tenant === undefined || max === undefined) return nothing;
    return this.#locks.run(tenant, () => this.#reserve(opening, { tenant, max }));
  }

  async #reserve(
    opening: Opening,
    { tenant, max }: { readonly tenant: string; readonly max: number },
  ): Promise<EndOpening> {
    const openings = this.#openings.get(tenant) ?? new Set();
    const isFull = (await this.#count(tenant, openings)) >= max;
    if (isFull && !isOpening(opening, openings)) throw overTopicQuota(tenant, max);
    this.#openings.set(tenant, openings.add(opening));
    const end = (): void => {
      openings.delete(opening);
      if (openings.size === 0 && this.#openings.get(tenant) === openings) this.#openings.delete(tenant);
    };
    return (fate) => {
      if (fate === "known") end();
      else this.#options.clock.after(unknownCountedMs, end);
    };
  }

  async #count(tenant: string, openings: ReadonlySet<Opening>): Promise<number> {
    const opened = new Set([...openings].map(({ groupId, name }) => `${groupId} ${name}`));
    let count = opened.size;
    for (const groupId of this.#options.groupIds) {
      const names = [...openings].filter((one) => one.groupId === groupId).map(({ name }) => name);
      for (const prefix of prefixesOf(tenant)) {
        count += await this.#options.store.countTopics(groupId, prefix, names);
      }
    }
    return count;
  }
}

/** Whether another call is opening the same topic. */
function isOpening({ groupId, name }: Opening, openings: ReadonlySet<Opening>): boolean {
  return [...openings].some((one) => one.groupId === groupId && one.name === name);
}
