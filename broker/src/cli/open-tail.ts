import type { ReceivedEvent, SubscribeOptions } from "@stele/client";
import type { Session } from "./connection.ts";

export interface TailOptions extends Pick<SubscribeOptions, "after" | "filter"> {
  readonly topics: readonly string[];
}

/** Connects, says so on stderr, and gives the events until Ctrl-C, which is no failure. */
export async function openTail(
  { stele, output, signal }: Session,
  { topics, ...options }: TailOptions,
): Promise<AsyncIterable<ReceivedEvent>> {
  const tail = stele.subscribe(topics, {
    ...options,
    signal,
    onResync: ({ after }) => output.note(`the chain took back the events after ${after}`),
    onReconnect: ({ reason, delayMs }) => output.note(`${reason}; trying again in ${(delayMs / 1000).toFixed(1)} s`),
  });
  await tail.opened();
  output.note(`watching ${topics.join(" ")} from ${tail.place}; Ctrl-C ends`);
  return untilAborted(tail, signal);
}

async function* untilAborted(events: AsyncIterable<ReceivedEvent>, signal: AbortSignal): AsyncGenerator<ReceivedEvent> {
  try {
    yield* events;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** So many events, or all of them. */
export async function* first(
  events: AsyncIterable<ReceivedEvent>,
  count = Number.POSITIVE_INFINITY,
): AsyncGenerator<ReceivedEvent> {
  let given = 0;
  for await (const event of events) {
    yield event;
    given += 1;
    if (given >= count) return;
  }
}
