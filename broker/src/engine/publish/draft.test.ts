import { describe, expect, it } from "vitest";
import { parseTopicName } from "../../domain/topic-name.ts";
import { type Claim, mayAllStart } from "./claim.ts";
import { Draft } from "./draft.ts";

const limits = { eventsPerTransactionMax: 1000, bytesPerTransactionMax: 120_000, bytesPerTopic: 224 };
const bytes = 10;

function submissionTo(name: string) {
  const topic = { name: parseTopicName(name), address: "0x00", digest: "00000000" } as const;
  const payload = { content: new Uint8Array(bytes), extensions: [] };
  return { topic, payload, bytes, since: 0, onSettled: () => {} };
}

/** Adds publishes as long as there is room; returns how many were added. */
function fill(draft: Draft, nameOf: (index: number) => string): number {
  let added = 0;
  for (; draft.hasRoomFor(submissionTo(nameOf(added)), limits); added += 1) draft.add(submissionTo(nameOf(added)));
  return added;
}

describe("the room of a draft", () => {
  it("shrinks with each added topic and each added event", () => {
    const draft = new Draft();
    const topics = fill(draft, (index) => `topic/${index}`);
    expect(topics).toBe(Math.floor((limits.bytesPerTransactionMax + 224) / (224 + bytes)));
    expect(draft.hasRoomFor(submissionTo("topic/0"), limits)).toBe(true);
    expect(fill(draft, () => "topic/0")).toBeGreaterThan(0);
    expect(draft.isFull(limits) || !draft.hasRoomFor(submissionTo("topic/0"), limits)).toBe(true);
  });

  it("suffices for 1,000 small events of one topic", () => {
    expect(fill(new Draft(), () => "one")).toBe(1000);
  });
});

const callbacks = { onRecorded: () => {}, onTaken: () => {}, onFailed: () => {} };

/** A claim whose node may send its publish, or may not any more. */
function claimOf(mayStart: boolean): Claim {
  return { unrecorded: undefined, mayStart: () => mayStart, order: undefined, ...callbacks };
}

describe("a batch of publishes with keys", () => {
  it("keeps their claims in both parts of a split, and after some publishes have left it", () => {
    const draft = new Draft();
    const claims = [claimOf(true), claimOf(true), claimOf(false)] as const;
    for (const claim of claims) draft.add({ ...submissionTo("one"), claim });
    const [batch] = draft.batches;
    expect(batch?.split(1).map((part) => part.claims)).toEqual([[claims[0]], [claims[1], claims[2]]]);
    expect(batch?.without(new Set([claims[1]]))?.claims).toEqual([claims[0], claims[2]]);
  });

  it("may be sent only if each of them may", () => {
    expect(mayAllStart([claimOf(true), claimOf(true)])?.()).toBe(true);
    expect(mayAllStart([claimOf(true), claimOf(false)])?.()).toBe(false);
    expect(mayAllStart([])).toBeUndefined();
  });
});
