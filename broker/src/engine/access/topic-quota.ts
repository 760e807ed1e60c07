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

/** A topic with the number of calls that open it. */
interface CountedTopic {
  readonly opening: Opening;
  calls: number;
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
  /** By tenant, and by {@link keyOf}: many calls may open one topic, again and again while the chain does not answer. */
  readonly #openings = new Map<string, Map<string, CountedTopic>>();

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
    const openings = this.#openings.get(tenant) ?? new Map<string, CountedTopic>();
    const isFull = (await this.#count(tenant, openings)) >= max;
    const key = keyOf(opening);
    const topic = openings.get(key) ?? { opening, calls: 0 };
    if (isFull && topic.calls === 0) throw overTopicQuota(tenant, max);
    topic.calls += 1;
    this.#openings.set(tenant, openings.set(key, topic));
    const end = (): void => {
      topic.calls -= 1;
      if (topic.calls === 0) openings.delete(key);
      if (openings.size === 0 && this.#openings.get(tenant) === openings) this.#openings.delete(tenant);
    };
    return (fate) => {
      if (fate === "known") end();
      else this.#options.clock.after(unknownCountedMs, end);
    };
  }

  async #count(tenant: string, openings: ReadonlyMap<string, CountedTopic>): Promise<number> {
    const opened = [...openings.values()].map(({ opening }) => opening);
    let count = opened.length;
    for (const groupId of this.#options.groupIds) {
      const names = opened.filter((one) => one.groupId === groupId).map(({ name }) => name);
      for (const prefix of prefixesOf(tenant)) {
        count += await this.#options.store.countTopics(groupId, prefix, names);
      }
    }
    return count;
  }
}

function keyOf({ groupId, name }: Opening): string {
  return `${groupId} ${name}`; // No group has a space in its name.
}
