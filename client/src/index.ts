export { isUnsafeToRepeat } from "./order.ts";
export {
  AdminClient,
  type Order,
  type OrderResult,
  type OrderTarget,
  type Place,
  type SessionSearch,
  type SubscriptionSearch,
} from "./admin.ts";
export type { Open } from "./lib/open.ts";
export type { CallOptions, SteleOptions } from "./options.ts";
export type { Content, Publication, Published, PublishOptions, PublishOutcome } from "./publish.ts";
export type { GroupReadiness, NodeReadiness, Readiness } from "./readiness.ts";
export type { Rights } from "./rights.ts";
export { type ListOptions, Stele } from "./stele.ts";
export { SteleError, type SteleErrorOptions } from "./stele-error.ts";
export { type CloudEventBody, ReceivedCloudEvent } from "./tail/received-cloud-event.ts";
export { ReceivedEvent } from "./tail/received-event.ts";
export type { Reconnect, Resync, SubscribeOptions, Tail } from "./tail/tail.ts";
export type { EventBody, Proof, TopicInfo, TopicPageBody, TopicState } from "@stele/wire";
