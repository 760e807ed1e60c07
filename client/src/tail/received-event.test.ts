import { expect, it } from "vitest";
import { ReceivedEvent } from "./received-event.ts";

const markedJson = '\uFEFF{"a":1}';

function toEvent(content: string): ReceivedEvent {
  return new ReceivedEvent({ topic: "t", eventId: "2cf24dba-1-1", content, extensions: {} });
}

it("text() returns a byte order mark that was published, and json() ignores it", () => {
  const event = toEvent(Buffer.from(markedJson).toString("base64"));
  expect(event.text()).toBe(markedJson);
  expect(event.json()).toEqual({ a: 1 });
});
