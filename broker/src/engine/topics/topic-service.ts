import { BrokerError } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { NameRange } from "../../domain/name-range.ts";
import type { Topic } from "../../domain/topic.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { ListCall, ListResult, TopicCall } from "../broker.ts";
import type { Group, Groups, TopicState } from "../group.ts";
import { isFateUnknown, notIndexed } from "../publish/refusals.ts";
import { Deadline } from "../time.ts";

/** Largest pageSize of a listing. Any value outside 1 to 99 means 10. */
const pageSizeMax = 99;
const pageSizeDefault = 10;

export interface TopicServiceOptions {
  readonly groups: Groups;
  readonly store: Store;
  readonly clock: Clock;
}

type ReserveTopic = (opening: {
  readonly groupId: GroupId;
  readonly name: TopicName;
}) => Promise<(fate: "known" | "unknown") => void>;

/** Opens, closes and describes topics. */
export class TopicService {
  readonly #options: TopicServiceOptions;

  constructor(options: TopicServiceOptions) {
    this.#options = options;
  }

  /** Opens a topic. `reserve` counts a new topic, or throws to refuse it; the function that it returns is called at the end. Returns false if it was open. */
  async open(call: TopicCall, reserve: ReserveTopic): Promise<boolean> {
    const name = parseTopicName(call.topic);
    const group = this.#options.groups.get(call.groupId);
    const topic = await group.findTopic(name);
    if (topic !== undefined && !topic.closed) return false;
    const release = topic === undefined ? await reserve({ groupId: group.id, name }) : undefined;
    try {
      await this.#change(group, { name, closed: false }, (signal) => group.ledger.openTopic(name, signal));
      release?.("known");
    } catch (error) {
      release?.(isFateUnknown(error) ? "unknown" : "known");
      throw error;
    }
    return true;
  }

  /** Closes a topic. Returns whether it was open before. */
  async close(call: TopicCall): Promise<boolean> {
    const name = parseTopicName(call.topic);
    const group = this.#options.groups.get(call.groupId);
    const topic = await group.getTopic(name);
    if (topic.closed) return false;
    const wanted = { name, closed: true };
    await this.#change(group, wanted, (signal) => group.ledger.closeTopic(name, signal));
    return true;
  }

  async exist(call: TopicCall): Promise<boolean> {
    const name: TopicName = parseTopicName(call.topic);
    return (await this.#options.groups.get(call.groupId).findTopic(name)) !== undefined;
  }

  /** @throws BrokerError 100101 if the topic does not exist. */
  async state(call: TopicCall): Promise<Topic> {
    const name = parseTopicName(call.topic);
    return this.#options.groups.get(call.groupId).getTopic(name);
  }

  /** Lists the topics whose names are in one of the ranges; all if left out. @throws BrokerError 100104; 200205 if {@link Group.findLiveHead} throws it. */
  async list(call: ListCall, ranges?: readonly NameRange[]): Promise<ListResult> {
    const { pageIndex } = call;
    if (!Number.isSafeInteger(pageIndex) || pageIndex < 0) {
      // Do not quote the number: it may be rounded, and differ from the one that the caller wrote.
      throw new BrokerError("pageIndexInvalid", { details: "the largest is 2^53 - 1" });
    }
    const group = this.#options.groups.get(call.groupId);
    const pageSize = toPageSize(call.pageSize);
    const offset = Math.min(pageIndex * pageSize, Number.MAX_SAFE_INTEGER);
    const page = await this.#options.store.listTopics(group.id, { offset, limit: pageSize, ranges });
    await group.findLiveHead(); // Another node may have emptied the index.
    return { ...page, pageIndex, pageSize };
  }

  /** Sends one transaction and waits until its block is indexed. An error after the transaction must not tell the caller that nothing was done. */
  async #change(
    group: Group,
    wanted: TopicState,
    send: (signal: AbortSignal) => Promise<{ readonly blockNumber: number }>,
  ): Promise<void> {
    using deadline = new Deadline(this.#options.clock, group.limits.transactionTimeoutMs);
    const { blockNumber } = await send(deadline.signal);
    if (!(await group.progress.waitFor(blockNumber, deadline.signal))) throw notIndexed(blockNumber);
    const isSo = await group.hasTopicSo(wanted).catch((cause: unknown) => {
      throw notIndexed(blockNumber, cause);
    });
    if (!isSo) throw notIndexed(blockNumber);
  }
}

function toPageSize(asked: number): number {
  return Number.isInteger(asked) && asked >= 1 && asked <= pageSizeMax ? asked : pageSizeDefault;
}
