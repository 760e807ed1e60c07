import { isCloudEvent } from "../domain/delivery-options.ts";
import type { GroupId } from "../domain/group-id.ts";
import { toInterest } from "../domain/interest.ts";
import { BoundedLog } from "../lib/bounded-log.ts";
import { perKey } from "../lib/per-key.ts";
import type { Access } from "./access/access.ts";
import type { OriginSource } from "./broker.ts";
import type { ClusterMember } from "./cluster/cluster-member.ts";
import { Feed, type FeedRequest, type FeedOptions } from "./dispatch/feed.ts";
import { DeliveryWorker, type DeliveryWorkerOptions } from "./deliver/delivery-worker.ts";
import type { WorkerFactory } from "./deliver/delivery-workers.ts";
import { SharedEventsAhead } from "./deliver/events-ahead.ts";

/** Maximum number of log lines of one kind about all subscriptions of a group in a burst; each second allows one more. */
const subscriptionLinesMax = 20;

export interface WorkerFactoryOptions
  extends Omit<DeliveryWorkerOptions, "skippedLog" | "unreadLog" | "sharedEventsAhead"> {
  readonly access: Pick<Access, "receiverOf" | "mayDeliver" | "callbackTurnOf" | "namesFor">;
  readonly feedPartsOf: (groupId: GroupId) => Omit<FeedOptions, keyof FeedRequest>;
  /** Origins for one worker: each has its own patience with the chain. */
  readonly originsOf: (groupId: GroupId) => OriginSource | undefined;
  /** Undefined if the broker is a single node. */
  readonly findMember: () => Pick<ClusterMember, "isLive"> | undefined;
}

/** Creates the worker of each subscription. A start may create tens of thousands, so the options that a group's workers share are created once. */
export function createWorkerFactory(options: WorkerFactoryOptions): WorkerFactory {
  const { access, feedPartsOf, findMember, troubles } = options;
  const sharedEventsAhead = new SharedEventsAhead();
  const lines = { atOnce: subscriptionLinesMax, perSecond: 1 };
  const partsOf = perKey((groupId: GroupId): DeliveryWorkerOptions => {
    const logger = options.logger.child({ groupId });
    const createLog = (): BoundedLog => new BoundedLog({ ...options, logger, lines });
    return { ...options, logger, sharedEventsAhead, skippedLog: createLog(), unreadLog: createLog() };
  });
  return (subscription, ahead) => {
    const { id, groupId, filter, cursor, owner, delivery } = subscription;
    const receives = access.receiverOf(subscription);
    // An owner without any rights gets no callback, so its events wait instead of being skipped.
    const mayReceive: typeof receives = (topic) => !access.mayDeliver(subscription) || receives(topic);
    const feed = new Feed({
      ...feedPartsOf(groupId),
      filters: [filter],
      interest: toInterest(filter),
      after: cursor,
      mayReceive,
      onRead: () => troubles.clear(id),
    });
    const member = findMember();
    const mayStart = (): boolean => member?.isLive(owner) !== false && access.mayDeliver(subscription);
    return new DeliveryWorker(
      {
        subscription,
        feed,
        ahead,
        mayStart,
        mayReceive,
        turn: access.callbackTurnOf(subscription),
        names: access.namesFor(subscription),
        origins: isCloudEvent(delivery.options) ? options.originsOf(groupId) : undefined,
      },
      partsOf(groupId),
    );
  };
}
