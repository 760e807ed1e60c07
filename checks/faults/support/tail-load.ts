import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../harness/client.ts";
import type { Random } from "../../harness/random.ts";
import type { TailClient, TailedEvent } from "../../harness/tail-client.ts";

/** Maximum number of frames that one connection reads before the test cuts it. */
const framesMax = 12;
/** Pause before the next try at a killed broker, in milliseconds. */
const awayMs = 20;

interface TailRun {
  readonly url: () => string;
  readonly random: Random;
  readonly signal: AbortSignal;
}

/** Connects, reads a random number of frames, cuts the connection, and reconnects, until the signal aborts. */
export async function runTail(tail: TailClient, { url, random, signal }: TailRun): Promise<void> {
  while (!signal.aborted) {
    let left = 1 + random.below(framesMax);
    try {
      await tail.read(url(), () => (left -= 1) > 0 && !signal.aborted);
    } catch {
      await delay(awayMs); // the broker was killed and is not back yet
    }
  }
}

/** Publishes one event after the other until the signal aborts. Does not repeat an event whose publish fails. */
export async function publishUntil(
  signal: AbortSignal,
  { client, topic }: { readonly client: () => Client; readonly topic: string },
): Promise<void> {
  for (let number = 1; !signal.aborted; number += 1) {
    try {
      await client().publish(topic, String(number));
    } catch {
      await delay(awayMs);
    }
  }
}

/** Sequences of one topic's events, in order of arrival. */
export function sequencesOf(events: readonly TailedEvent[], topic: string): readonly number[] {
  return events.filter((event) => event.topic === topic).map(({ eventId }) => Number(eventId.split("-")[1]));
}
