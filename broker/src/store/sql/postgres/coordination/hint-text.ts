import { type Kysely, sql } from "kysely";
import { type GroupId, parseGroupId } from "../../../../domain/group-id.ts";
import type { NodeId } from "../../../../domain/node.ts";
import { parseAnySubscriptionId } from "../../../../domain/subscription.ts";
import type { SessionId } from "../../../../ports/session-store.ts";
import type { Departure, Hint, TakeOver } from "../../../../ports/coordinator.ts";
import type { Schema } from "../../schema.ts";
import { hintChannel } from "../sharing.ts";

/** Sends hints to all listeners once the transaction is committed. */
export async function sendHints(transaction: Kysely<Schema>, hints: readonly Hint[]): Promise<void> {
  if (hints.length === 0) return;
  const texts = hints.map((hint) => JSON.stringify(hint));
  await sql`select pg_notify(${hintChannel}, text) from unnest(${texts}::text[]) as hint (text)`.execute(transaction);
}

/** Undefined if the text is not a hint: every client of the database can write to the channel. */
export function parseHint(text: string): Hint | undefined {
  try {
    return toHint(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** @throws BrokerError if the identifier of a group or subscription is malformed. */
function toHint(value: unknown): Hint | undefined {
  if (typeof value !== "object" || value === null || !("kind" in value)) return undefined;
  if (value.kind === "nodes") return { kind: "nodes" };
  if (value.kind === "gone") return toDeparture(value);
  if (value.kind === "taken") return toTakeOver(value);
  if ("groupId" in value && typeof value.groupId === "string") return toGroupHint(value, parseGroupId(value.groupId));
  if (value.kind === "subscription" && "id" in value && typeof value.id === "string") {
    return { kind: "subscription", id: parseAnySubscriptionId(value.id) };
  }
  if (value.kind === "session" && "id" in value && typeof value.id === "string") {
    return { kind: "session", id: value.id as SessionId }; // Not checked: the identifier is only compared.
  }
  return undefined;
}

function toGroupHint(value: object & { readonly kind: unknown }, groupId: GroupId): Hint | undefined {
  if (value.kind === "index") return { kind: "index", groupId };
  if (value.kind !== "ahead" || !("blockNumber" in value)) return undefined;
  const { blockNumber } = value;
  return isCount(blockNumber) ? { kind: "ahead", groupId, blockNumber } : undefined;
}

function toDeparture(value: object): Hint | undefined {
  const { how, nodeId, address, subscriptions, groups } = value as { readonly [Name in keyof Departure]?: unknown };
  if (how !== "left" && how !== "expired") return undefined;
  if (typeof nodeId !== "string" || typeof address !== "string") return undefined;
  if (!isCount(subscriptions) || !isCount(groups)) return undefined;
  return { kind: "gone", how, nodeId: nodeId as NodeId, address, subscriptions, groups }; // Not checked: only compared, logged and shown.
}

/** @throws BrokerError if the group's identifier is malformed. */
function toTakeOver(value: object): Hint | undefined {
  const { nodeId, from, groupId, subscriptions } = value as { readonly [Name in keyof TakeOver]?: unknown };
  if (typeof nodeId !== "string" || !isOptionalText(from) || !isOptionalText(groupId)) return undefined;
  if (!isCount(subscriptions)) return undefined;
  const nodes = { nodeId: nodeId as NodeId, from: from as NodeId | undefined }; // Only compared and shown.
  return { kind: "taken", ...nodes, groupId: groupId === undefined ? undefined : parseGroupId(groupId), subscriptions };
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === "string";
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}
