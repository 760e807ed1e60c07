import { expect, test } from "vitest";
import { judgeHandshake, judgePing } from "./handshake.ts";

const answer = (status: number, headers: Readonly<Record<string, string>> = {}) => {
  return { status, headers, body: Buffer.alloc(0), isCut: false, brokenBy: undefined };
};

test.each([
  [200, { "webhook-allowed-origin": "broker.example" }, "agreed"],
  [204, { "webhook-allowed-origin": "*" }, "agreed"],
  [200, { "webhook-allowed-origin": "other.example, Broker.Example" }, "agreed"],
  [200, { "webhook-allowed-origin": "other.example" }, "refused"],
  [200, { "webhook-allowed-origin": "" }, "refused"],
  [200, {}, "unknown"],
  [200, { "access-control-allow-origin": "*" }, "unknown"],
  [302, { location: "/" }, "unknown"],
  [404, {}, "unknown"],
  [405, {}, "unknown"],
  [501, {}, "unknown"],
  [400, {}, "refused"],
  [401, {}, "refused"],
  [403, { "webhook-allowed-origin": "*" }, "refused"],
  [410, {}, "refused"],
  [408, {}, "unreachable"],
  [429, {}, "unreachable"],
  [500, {}, "unreachable"],
  [503, {}, "unreachable"],
])("a handshake answered with %i and %j is %s", (status, headers, kind) => {
  expect(judgeHandshake(answer(status, headers), "broker.example").kind).toBe(kind);
});

test.each([
  ["120", 120],
  ["1", 1],
  ["*", undefined],
  ["0", undefined],
  ["-5", undefined],
  ["1.5", undefined],
  ["9999999999", undefined],
])("a rate of %s is %s requests a minute", (rate, requestsPerMinuteMax) => {
  const headers = { "webhook-allowed-origin": "*", "webhook-allowed-rate": rate };
  expect(judgeHandshake(answer(200, headers), "broker.example")).toEqual({
    kind: "agreed",
    ...(requestsPerMinuteMax === undefined ? {} : { requestsPerMinuteMax }),
  });
});

test.each([
  [200, "agreed"],
  [204, "agreed"],
  [301, "refused"],
  [400, "refused"],
  [404, "refused"],
  [405, "refused"],
  [429, "unreachable"],
  [500, "unreachable"],
])("a ping answered with %i is %s", (status, kind) => {
  expect(judgePing(answer(status)).kind).toBe(kind);
});
