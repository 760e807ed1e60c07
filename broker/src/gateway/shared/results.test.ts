import { describe, expect, it } from "vitest";
import { toPosition } from "../../domain/position.ts";
import { sampleEventId, sampleTopic } from "../testing/recording-broker.ts";
import { renderSendResult, toEventBody } from "./results.ts";

it.each(["hello", 'a "quoted" \\ name', "del \u007f \u0080"])(
  "renders the result of a publish to %j as JSON",
  (topic) => {
    for (const result of [
      { topic, eventId: sampleEventId, status: "SUCCESS" },
      { topic, eventId: "", status: "TIMEOUT" },
    ] as const) {
      expect(renderSendResult(result)).toBe(JSON.stringify(result));
    }
  },
);

describe("event content is the Base64 form of the published bytes", () => {
  it("for every byte value, even if the bytes are part of a longer buffer", () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    const content = new Uint8Array([1, 2, ...bytes, 3]).subarray(2, 258);
    const place = { topic: sampleTopic.name, sequence: 1, blockNumber: 1, position: toPosition(1, 0) };
    const body = toEventBody({ ...place, content, extensions: [], eventId: sampleEventId });
    expect(Buffer.from(body.content, "base64")).toEqual(Buffer.from(bytes));
  });
});
