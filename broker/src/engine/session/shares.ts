import type { GroupId } from "../../domain/group-id.ts";
import { parseSharedFilter } from "../../domain/shared-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { Share, type ShareMember, type ShareParts, type SharePlace } from "./share.ts";

/** Makes what a share works with, given which topics may reach it. */
export type ToShareParts = (groupId: GroupId, mayReceive: (topic: TopicName) => boolean) => ShareParts;

/** The shares of one group, by the text of their filters: `$share/name/filter`. A share lives as long as it has members. */
export class Shares {
  readonly #groupId: GroupId;
  readonly #toParts: ToShareParts;
  readonly #shares = new Map<TopicFilter, Share>();
  #isStopped = false;
  #isClosing = false;

  constructor(groupId: GroupId, toParts: ToShareParts) {
    this.#groupId = groupId;
    this.#toParts = toParts;
  }

  join(text: TopicFilter, member: ShareMember): void {
    const share = this.#shares.get(text) ?? this.#create(text);
    share.add(member);
  }

  leave(text: TopicFilter, member: ShareMember): void {
    const share = this.#shares.get(text);
    share?.delete(member);
    if (share?.isEmpty !== true) return;
    this.#shares.delete(text);
    void share.stop();
  }

  /** See {@link Share.takeBack}. False where the member has to keep the event: the share has no member any more, or ends with the process. */
  takeBack(text: TopicFilter, place: SharePlace): boolean {
    const share = this.#isClosing ? undefined : this.#shares.get(text);
    share?.takeBack(place);
    return share !== undefined;
  }

  /** The process ends: nothing is taken back from now on. */
  close(): void {
    this.#isClosing = true;
  }

  /** See {@link Share.wake}. */
  wake(text: TopicFilter): void {
    this.#shares.get(text)?.wake();
  }

  /** See {@link Readers.stop}. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#shares.values()].map(async (share) => share.stop()));
  }

  /** See {@link Readers.restart}. */
  restart(): void {
    this.#isStopped = false;
    for (const share of this.#shares.values()) share.start();
  }

  #create(text: TopicFilter): Share {
    const filter = parseSharedFilter(text)?.filter ?? text;
    const parts = this.#toParts(this.#groupId, (topic) => share.mayReceive(topic));
    const share = new Share(filter, parts);
    this.#shares.set(text, share);
    if (!this.#isStopped) share.start();
    return share;
  }
}
