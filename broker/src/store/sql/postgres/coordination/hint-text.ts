import { type Kysely, sql } from "kysely";
import { parseGroupId } from "../../../../domain/group-id.ts";
import { parseSubscriptionId } from "../../../../domain/subscription.ts";
import type { Hint } from "../../../../ports/coordinator.ts";
import type { Schema } from "../../schema.ts";
import { hintChannel } from "../sharing.ts";

/** Tells whoever listens, once the transaction is committed. */
export async function tell(transaction: Kysely<Schema>, hints: readonly Hint[]): Promise<void> {
  if (hints.length === 0) return;
  const texts = hints.map((hint) => JSON.stringify(hint));
  await sql`select pg_notify(${hintChannel}, text) from unnest(${texts}::text[]) as hint (text)`.execute(transaction);
}

/** Undefined for what is no hint: anybody who reaches the database can write to the channel. */
export function parseHint(text: string): Hint | undefined {
  try {
    return toHint(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** @throws BrokerError where an identifier is malformed. */
function toHint(value: unknown): Hint | undefined {
  if (typeof value !== "object" || value === null || !("kind" in value)) return undefined;
  if (value.kind === "nodes") return { kind: "nodes" };
  if (value.kind === "index" && "groupId" in value && typeof value.groupId === "string") {
    return { kind: "index", groupId: parseGroupId(value.groupId) };
  }
  if (value.kind === "subscription" && "id" in value && typeof value.id === "string") {
    return { kind: "subscription", id: parseSubscriptionId(value.id) };
  }
  return undefined;
}
