import { describe, expect, it } from "vitest";
import { parseTopicName } from "../../domain/topic-name.ts";
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
