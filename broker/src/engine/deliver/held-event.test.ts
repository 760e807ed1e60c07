import { expect, it } from "vitest";
import { toPosition } from "../../domain/position.ts";
import { nothingFailed } from "../../domain/subscription.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { endHeld, type HeldEvent } from "./held-event.ts";

it("an ended event keeps its place and topic, but neither its content nor its batch", () => {
  const position = toPosition(1, 2);
  const place = { topic: parseTopicName("a"), sequence: 3, blockNumber: 1, position };
  const held: HeldEvent = {
    event: { ...place, content: new Uint8Array(65_536), extensions: [["svc-x", "y"]] },
    position,
    end: undefined,
    lane: "a",
    bytes: 65_536,
    failure: nothingFailed,
    isAlone: false,
    letter: undefined,
  };
  endHeld(held, "accepted");
  expect(held).toMatchObject({ end: "accepted", position });
  expect(held.event).toEqual({ ...place, content: new Uint8Array(), extensions: [] });
});
