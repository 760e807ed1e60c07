import type { Acknowledged, Promised } from "../acknowledged.ts";
import type { Call } from "./trace.ts";

/** What the clients of a load know after the load has ended. */
export interface LoadFacts {
  /** In the order in which the load opened them, one after another, before it created the subscription. */
  readonly topics: readonly string[];
  readonly subscriptionId: string;
  readonly acknowledged: ReadonlyMap<string, Acknowledged>;
  readonly sent: ReadonlyMap<string, { readonly topic: string }>;
}

const answer = /HTTP\/1\.1 200 /;
const callback = /"subscriptionId":/;
const eventIds = /"eventId":"([^"]+)"/g;

/** What the broker had promised clients by the time `at`, according to the bytes that it had sent. Other events of the load may or may not exist. */
export function promisedAt(at: number, calls: readonly Call[], loaded: LoadFacts): Promised {
  const texts = calls.flatMap((call) =>
    call.kind === "send" && call.startedAt < at ? [call.data.toString("latin1")] : [],
  );
  const answers = texts.filter((text) => answer.test(text)).length;
  const ids = idsOf(texts.filter((text) => !callback.test(text)));
  const events = ids.flatMap((id) => loaded.acknowledged.get(id) ?? []);
  return {
    topics: loaded.topics.slice(0, answers),
    events: events.map(({ topic, eventId, content }) => ({ topic, eventId, content })),
    sent: new Map([...loaded.sent].map(([content, { topic }]) => [content, topic])),
    subscriptionId: answers > loaded.topics.length ? loaded.subscriptionId : undefined,
    delivered: new Set(idsOf(texts.filter((text) => callback.test(text)))),
    blockHashes: new Map(),
  };
}

function idsOf(texts: readonly string[]): string[] {
  return texts.flatMap((text) => [...text.matchAll(eventIds)].map(([, id = ""]) => id));
}
