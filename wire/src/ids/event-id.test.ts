import { expect, it } from "vitest";
import { parseEventId } from "./event-id.ts";

it("parseEventId refuses upper-case hex digits with an error that asks for lower-case ones", () => {
  expect(() => parseEventId("2CF24DBA-59-1124")).toThrow('"2CF24DBA-59-1124" is not <8 lower-case hex digits>-');
  expect(parseEventId("2cf24dba-59-1124")).toEqual({ topicDigest: "2cf24dba", sequence: 59, blockNumber: 1124 });
});
