import type { ReceivedCloudEvent, ReceivedEvent, SubscribeOptions, Tail } from "@stele/client";
import { Option } from "commander";
import type { Session } from "./connection.ts";
import { UsageError } from "./io.ts";
import { parseDuration } from "./parse.ts";

export interface TailOptions extends Pick<SubscribeOptions, "after" | "filter"> {
  readonly topics: readonly string[];
}

/** The flag for the time at which a tail starts; it excludes `--after`. */
export function sinceOption(): Option {
  return new Option("--since <age>", "start this long ago: 90s, 10m, 12h, 2d")
    .argParser(parseDuration)
    .conflicts("after");
}

/**
 * Where a tail starts by `--since` or `--after`. A time before 1970 becomes 1970: no event is older, and `Date` has a limit.
 * @throws UsageError for a blank place. It may come from an unset variable of a script, and the broker would start after the newest event.
 */
export function startOf({
  since,
  after,
}: {
  readonly since?: number | undefined;
  readonly after?: string | undefined;
}): Date | string | undefined {
  if (after?.trim() === "") throw new UsageError("the place of --after is blank: name one, or leave the flag out");
  return since === undefined ? after : new Date(Math.max(Date.now() - since, 0));
}

/** Connects, notes that on stderr, and yields the events until Ctrl-C, which is not a failure. */
export function openTail(session: Session, options: TailOptions): Promise<AsyncIterable<ReceivedEvent>> {
  const { topics } = options;
  return open(session, session.stele.subscribe(topics, toSubscribeOptions(session, options)), topics);
}

/** Like `openTail`, with each event as a CloudEvent. */
export function openCloudEventTail(session: Session, options: TailOptions): Promise<AsyncIterable<ReceivedCloudEvent>> {
  const { topics } = options;
  return open(session, session.stele.subscribeCloudEvents(topics, toSubscribeOptions(session, options)), topics);
}

function toSubscribeOptions({ output, signal }: Session, { after, filter }: TailOptions): SubscribeOptions {
  return {
    after,
    filter,
    signal,
    onResync: ({ after: place }) => output.note(`a reorg removed events after ${place}`),
    onReconnect: ({ reason, delayMs }) => output.note(`${reason}; trying again in ${(delayMs / 1000).toFixed(1)} s`),
  };
}

async function open<Item>(
  { output, signal }: Session,
  tail: Tail<Item>,
  topics: readonly string[],
): Promise<AsyncIterable<Item>> {
  await tail.opened();
  output.note(`watching ${topics.join(" ")} from ${tail.place}; Ctrl-C ends`);
  return untilAborted(tail, signal);
}

async function* untilAborted<Item>(events: AsyncIterable<Item>, signal: AbortSignal): AsyncGenerator<Item> {
  try {
    yield* events;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** The first `count` events, at least one; all of them if left out. */
export async function* first<Item>(
  events: AsyncIterable<Item>,
  count = Number.POSITIVE_INFINITY,
): AsyncGenerator<Item> {
  let given = 0;
  for await (const event of events) {
    yield event;
    given += 1;
    if (given >= count) return;
  }
}
