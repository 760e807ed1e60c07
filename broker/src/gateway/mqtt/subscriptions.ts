import { toBrokerError } from "@stele/wire";
import { sessionFiltersMax } from "../../domain/session-filter.ts";
import { matchesFilter, parseTopicFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { ConnectedSession } from "../../engine/broker.ts";
import type { Attachment } from "../../engine/broker.ts";
import type { ProtocolVersion, SubscribePacket, SubscriptionRequest, UnsubscribePacket } from "./codec/packet.ts";
import { reason, toReasonCode } from "./reason-codes.ts";
import type { MqttSettings } from "./settings.ts";

export interface SubscribeContext {
  readonly attachment: Attachment;
  readonly version: ProtocolVersion;
  readonly settings: Pick<MqttSettings, "filtersRefused" | "denialCode">;
}

/** The codes of a SUBACK: the QoS granted, or why not. */
export function subscribeAll(packet: SubscribePacket, context: SubscribeContext): number[] {
  const { version } = context;
  const identifier = packet.properties.subscriptionIdentifiers?.[0];
  return packet.requests.map((request) => {
    const code = subscribe(request, context, identifier);
    return version === 4 && code > 2 ? reason.unspecified : code; // 3.1.1 knows one failure
  });
}

/** The codes of an UNSUBACK. */
export function unsubscribeAll(packet: UnsubscribePacket, session: ConnectedSession): number[] {
  return packet.filters.map((filter) => {
    try {
      return session.unsubscribe(parseTopicFilter(filter)) ? reason.success : reason.noSubscription;
    } catch {
      return reason.filterInvalid;
    }
  });
}

function subscribe(request: SubscriptionRequest, context: SubscribeContext, identifier: number | undefined): number {
  const { attachment, settings } = context;
  const { qos, isNoLocal, isRetainAsPublished } = request;
  if (request.filter.startsWith("$share/")) return reason.sharedNotSupported;
  try {
    const filter = parseTopicFilter(request.filter);
    const { session } = attachment;
    if (isRefused(filter, settings)) return settings.denialCode;
    if (session.filterCount >= sessionFiltersMax && !session.hasFilter(filter)) return reason.quotaExceeded;
    attachment.subscribe({ filter, qos, isNoLocal, isRetainAsPublished, identifier });
    return qos;
  } catch (error) {
    const refusal = toBrokerError(error);
    if (refusal.kind === "invalid") return reason.filterInvalid;
    const code = toReasonCode(refusal);
    return code === reason.notAuthorized ? settings.denialCode : code;
  }
}

/** Whether the operator refuses the filter: it is one of the list, or all that it matches is matched by one of the list. */
function isRefused(filter: TopicFilter, { filtersRefused }: Pick<MqttSettings, "filtersRefused">): boolean {
  const asName: string = filter; // `+` matches any one level, so a filter that matches this text covers it, unless it ends in `#`
  return filtersRefused.some(
    (refused) => (refused.endsWith("#") || !filter.endsWith("#")) && matchesFilter(refused, asName as TopicName),
  );
}
