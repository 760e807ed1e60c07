import { toPosition } from "../domain/position.ts";
import { parseSubscriptionId } from "../domain/subscription.ts";
import { parseTopicFilter } from "../domain/topic-filter.ts";
import type { SessionClaim, SessionId, StoredFilter } from "./session-store.ts";
import { everyByte, group } from "./store-examples.contract.ts";

export const position = toPosition(4, 1);
export const will = everyByte.slice(0, 40);

export function idOf(number: number): SessionId {
  return `00000000-0000-4000-a000-${String(number).padStart(12, "0")}` as SessionId;
}

export function claimOf(changes: Partial<SessionClaim> = {}): SessionClaim {
  return {
    groupId: group,
    protocol: "MQTT",
    key: "client ü",
    principal: "anonymous",
    will,
    willDelayMs: 100,
    expiryMs: 1_000,
    newId: idOf(1),
    newEpoch: 7,
    willId: idOf(99),
    position,
    generation: 0,
    owner: undefined,
    now: 1_700_000_000_000,
    isClean: false,
    isStream: false,
    isStored: true,
    mayBegin: true,
    mayKeepWill: true,
    ...changes,
  };
}

export function filterOf(number: number, changes: Partial<StoredFilter> = {}): StoredFilter {
  return {
    id: parseSubscriptionId(`00000000-0000-4000-b000-${String(number).padStart(12, "0")}`),
    filter: parseTopicFilter(`a/${number}/#`),
    qos: 2,
    isNoLocal: true,
    isRetainAsPublished: false,
    identifier: 268_435_455,
    startsAfter: position,
    ...changes,
  };
}
