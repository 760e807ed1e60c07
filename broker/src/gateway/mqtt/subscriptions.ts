import { BrokerError } from "@stele/wire";
import { coversFilter } from "../../domain/filter-containment.ts";
import { type SessionFilter, sessionFiltersMax } from "../../domain/session-filter.ts";
import { parseSharedFilter } from "../../domain/shared-filter.ts";
import { parseTopicFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import type { ConnectedSession } from "../../engine/broker.ts";
import type { Attachment } from "../../engine/broker.ts";
import type { Logger } from "../../lib/logger.ts";
import { toFailure } from "../shared/failure.ts";
import type { ProtocolVersion, SubscribePacket, SubscriptionRequest, UnsubscribePacket } from "./codec/packet.ts";
import { reason, toReasonCode } from "./reason-codes.ts";
import type { MqttSettings } from "./settings.ts";

interface UnsubscribeContext {
  readonly attachment: Attachment;
  readonly logger: Logger;
}

export interface SubscribeContext extends UnsubscribeContext {
  readonly version: ProtocolVersion;
  readonly settings: Pick<MqttSettings, "filtersRefused" | "denialCode">;
}

/** The codes of a SUBACK: for each filter the granted QoS, or the reason why the broker refuses it. */
export async function subscribeAll(packet: SubscribePacket, context: SubscribeContext): Promise<number[]> {
  const { attachment, version, settings } = context;
  const identifier = packet.properties.subscriptionIdentifiers?.[0];
  const room = new FilterRoom(attachment.session);
  const sessionFilters = packet.requests.map((request) => toSessionFilter(request, { room, identifier, settings }));
  const accepted = sessionFilters.filter((sessionFilter) => typeof sessionFilter === "object");
  const outcomes = await trySubscribe(context, accepted);
  const codes = sessionFilters.map((sessionFilter) => {
    if (typeof sessionFilter === "number") return sessionFilter;
    const outcome = outcomes instanceof BrokerError ? outcomes : outcomes[accepted.indexOf(sessionFilter)];
    return outcome instanceof BrokerError ? toCode(outcome, settings) : sessionFilter.qos;
  });
  return version === 4 ? codes.map((code) => (code > 2 ? reason.unspecified : code)) : codes; // 3.1.1 has one failure code
}

/** The codes of an UNSUBACK. */
export async function unsubscribeAll(
  packet: UnsubscribePacket,
  { attachment, logger }: UnsubscribeContext,
): Promise<number[]> {
  const filters = packet.filters.map(findFilter);
  const wellFormed = filters.filter((filter) => filter !== undefined);
  try {
    const answers = (await attachment.unsubscribe(wellFormed)).values();
    return filters.map((filter) => {
      if (filter === undefined) return reason.filterInvalid;
      return answers.next().value === true ? reason.success : reason.noSubscription;
    });
  } catch (error) {
    const code = toReasonCode(toFailure(error, logger, { operation: "MQTT unsubscribe" }));
    return filters.map(() => code);
  }
}

/** Values of Retain Handling (MQTT 5.0, section 3.8.3.1). */
const retainedOf = { 0: "always", 1: "if-new", 2: undefined } as const;

/** Limits the filters of a session. */
class FilterRoom {
  readonly #session: ConnectedSession;
  readonly #added = new Set<TopicFilter>();

  constructor(session: ConnectedSession) {
    this.#session = session;
  }

  /** Returns false if the session has no room for the filter. Otherwise counts the filter, if it is new. */
  take(filter: TopicFilter): boolean {
    if (this.#session.hasFilter(filter) || this.#added.has(filter)) return true;
    if (this.#session.filterCount + this.#added.size >= sessionFiltersMax) return false;
    this.#added.add(filter);
    return true;
  }
}

interface FilterContext extends Pick<SubscribeContext, "settings"> {
  readonly room: FilterRoom;
  readonly identifier: number | undefined;
}

/** The filter of the session, or the code that refuses it. */
function toSessionFilter(
  request: SubscriptionRequest,
  { room, identifier, settings }: FilterContext,
): SessionFilter | number {
  const { qos, isNoLocal, isRetainAsPublished } = request;
  const filter = findFilter(request.filter);
  if (filter === undefined) return reason.filterInvalid;
  const shared = parseSharedFilter(filter);
  if (isRefused(shared?.filter ?? filter, settings)) return settings.denialCode;
  if (!room.take(filter)) return reason.quotaExceeded;
  // A share gets no retained messages (section 4.8.2).
  const retained = shared === undefined ? retainedOf[request.retainHandling] : undefined;
  return { filter, qos, isNoLocal, isRetainAsPublished, retained, identifier };
}

async function trySubscribe(
  { attachment, logger }: SubscribeContext,
  sessionFilters: readonly SessionFilter[],
): Promise<readonly (boolean | BrokerError)[] | BrokerError> {
  try {
    return await attachment.subscribe(sessionFilters);
  } catch (error) {
    return toFailure(error, logger, { operation: "MQTT subscribe" });
  }
}

function toCode(refusal: BrokerError, { denialCode }: SubscribeContext["settings"]): number {
  if (refusal.kind === "invalid") return reason.filterInvalid;
  const code = toReasonCode(refusal);
  return code === reason.notAuthorized ? denialCode : code;
}

function findFilter(text: string): TopicFilter | undefined {
  try {
    parseSharedFilter(text); // throws if it is malformed
    return parseTopicFilter(text);
  } catch {
    return undefined;
  }
}

/**
 * Whether the operator refuses the filter: one of `filtersRefused` equals it, or matches everything that it matches. A filter that ends in `/` matches no
 * topic, so every filter covers it: only an equal one refuses it.
 */
function isRefused(filter: TopicFilter, { filtersRefused }: Pick<MqttSettings, "filtersRefused">): boolean {
  return filtersRefused.some(
    (refused) => refused === filter || (!filter.endsWith("/") && coversFilter(refused, filter)),
  );
}
