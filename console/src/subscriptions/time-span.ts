import type { OrderTarget, Place, Stele } from "@stele/client";
import { SteleError } from "@stele/client";
import { take } from "../lib/take.ts";
import { giveOrder, type PlaceOrder } from "./orders.ts";

/** The two ends of a time line, in milliseconds since the epoch. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** Steps of a time line. Its two ends are the first and the last event, whatever their times are. */
export const stepsMax = 1000;

/** Parts of a time line whose events are counted. */
const partsCounted = 24;

/** From the opening of the oldest topic until now. The topics are those of the subscription, or all of the default group if the target is a search. */
export async function findSpan(stele: Stele, target: OrderTarget, signal: AbortSignal): Promise<TimeSpan> {
  const to = Date.now();
  const { groupId, topic } =
    typeof target === "string" ? await stele.admin.subscription(target, { signal }) : everything;
  const { items } = await take(stele.admin.topics({ groupId, filter: topic, signal }), 1);
  const [oldest] = items;
  return { from: oldest === undefined ? to : Math.min(Date.parse(oldest.createdAt), to), to };
}

const everything = { groupId: undefined, topic: "#" };

/** The place at a step. The ends of the line are the first and the last event. */
export function toPlace({ from, to }: TimeSpan, step: number): Place {
  if (step <= 0) return "OFFSET_FIRST";
  if (step >= stepsMax) return "OFFSET_LAST";
  return new Date(from + ((to - from) * step) / stepsMax).toISOString();
}

/** What a person typed: a sequence is a number, everything else a text. */
export function parsePlace(text: string): Place {
  const trimmed = text.trim();
  return /^\d{1,15}$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** For each part of the time line, the number of its events that the order would affect. Counts by dry runs. */
export async function countParts(
  stele: Stele,
  { name, target, span }: { readonly name: PlaceOrder; readonly target: OrderTarget; readonly span: TimeSpan },
  signal: AbortSignal,
): Promise<readonly number[]> {
  const counts: number[] = [];
  for (let part = 0; part <= partsCounted; part += 1) {
    const place = toPlace(span, Math.round((part * stepsMax) / partsCounted));
    counts.push(await countFrom(stele, { name, target, place }, signal));
  }
  return counts.slice(1).map((count, index) => Math.abs(count - (counts[index] ?? 0)));
}

/** The number of events that the order would affect. 0 if the broker refuses the place because it is on the other side of the cursor. */
async function countFrom(
  stele: Stele,
  order: { readonly name: PlaceOrder; readonly target: OrderTarget; readonly place: Place },
  signal: AbortSignal,
): Promise<number> {
  try {
    return (await giveOrder(stele, { ...order, dryRun: true }, signal)).events;
  } catch (error) {
    if (error instanceof SteleError && error.code === placeRefused) return 0;
    throw error;
  }
}

const placeRefused = 200001;
