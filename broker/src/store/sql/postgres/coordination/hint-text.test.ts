import { describe, expect, it } from "vitest";
import { parseGroupId } from "../../../../domain/group-id.ts";
import { subscriptionOf } from "../../../../ports/store-examples.contract.ts";
import { parseHint } from "./hint-text.ts";

describe("parseHint", () => {
  it.each([
    { kind: "nodes" },
    { kind: "index", groupId: parseGroupId("1") },
    { kind: "subscription", id: subscriptionOf(1).id },
    { kind: "ahead", groupId: parseGroupId("1"), blockNumber: 7 },
    { kind: "gone", how: "left", nodeId: "x", address: "a:1", subscriptions: 0, groups: 2 },
    { kind: "taken", nodeId: "x", from: "y", subscriptions: 3 },
    { kind: "taken", nodeId: "x", groupId: parseGroupId("1"), subscriptions: 0 },
  ])("parses %j", (hint) => {
    expect(parseHint(JSON.stringify(hint))).toEqual(hint);
  });

  it("omits fields that a hint of its kind does not have", () => {
    expect(parseHint('{"kind":"nodes","id":1}')).toEqual({ kind: "nodes" });
  });

  it.each([
    "",
    "nodes",
    "{",
    "null",
    "7",
    "[]",
    "{}",
    '{"kind":"other"}',
    '{"kind":"index"}',
    '{"kind":"index","groupId":7}',
    '{"kind":"index","groupId":"a b"}',
    '{"kind":"ahead","groupId":"1"}',
    '{"kind":"ahead","groupId":"1","blockNumber":"7"}',
    '{"kind":"ahead","groupId":"1","blockNumber":-1}',
    '{"kind":"ahead","groupId":"1","blockNumber":1.5}',
    '{"kind":"ahead","blockNumber":7}',
    '{"kind":"gone","how":"died","nodeId":"x","address":"a:1","subscriptions":0,"groups":0}',
    '{"kind":"gone","how":"left","nodeId":"x","address":"a:1","subscriptions":-1,"groups":0}',
    '{"kind":"gone","how":"left","nodeId":"x","subscriptions":0,"groups":0}',
    '{"kind":"taken","from":"y","subscriptions":3}',
    '{"kind":"taken","nodeId":"x","from":7,"subscriptions":3}',
    '{"kind":"taken","nodeId":"x","groupId":"a b","subscriptions":0}',
    '{"kind":"taken","nodeId":"x"}',
    '{"kind":"subscription"}',
    '{"kind":"subscription","id":"x"}',
  ])("returns undefined for %j", (text) => {
    expect(parseHint(text)).toBeUndefined();
  });
});
