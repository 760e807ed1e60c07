import { toBrokerError } from "@stele/wire";
import { sessionFiltersMax } from "../../domain/session-filter.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import type { ConnectedSession } from "../../engine/broker.ts";
import type { Attachment } from "../../engine/broker.ts";
import type { ProtocolVersion, SubscribePacket, SubscriptionRequest, UnsubscribePacket } from "./codec/packet.ts";
import { reason, toReasonCode } from "./reason-codes.ts";

/** The codes of a SUBACK: the QoS granted, or why not. */
export function subscribeAll(packet: SubscribePacket, attachment: Attachment, version: ProtocolVersion): number[] {
  const identifier = packet.properties.subscriptionIdentifiers?.[0];
  return packet.requests.map((request) => {
    const code = subscribe(request, attachment, identifier);
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

function subscribe(request: SubscriptionRequest, attachment: Attachment, identifier: number | undefined): number {
  const { qos, isNoLocal, isRetainAsPublished } = request;
  if (request.filter.startsWith("$share/")) return reason.sharedNotSupported;
  try {
    const filter = parseTopicFilter(request.filter);
    const { session } = attachment;
    if (session.filterCount >= sessionFiltersMax && !session.hasFilter(filter)) return reason.quotaExceeded;
    attachment.subscribe({ filter, qos, isNoLocal, isRetainAsPublished, identifier });
    return qos;
  } catch (error) {
    const refusal = toBrokerError(error);
    return refusal.kind === "invalid" ? reason.filterInvalid : toReasonCode(refusal);
  }
}
