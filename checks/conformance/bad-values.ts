import { randomUUID } from "node:crypto";
import type { Params } from "../harness/apis.ts";

/** A call that the broker refuses on every transport. The test replaces the eventId `{event}` by that of an existing event. */
export interface BadCall {
  readonly what: string;
  readonly operation: string;
  readonly params: Params;
  readonly code: number;
  /** Whether the parameters are too long for a query string, which in a GET has at most 1,024 bytes. */
  readonly isLong?: boolean;
}

const url = "http://127.0.0.1:65535/";
const topic = "bad";
const topicOperations: readonly (readonly [string, Params])[] = [
  ["open", {}],
  ["close", {}],
  ["exist", {}],
  ["state", {}],
  ["publish", { content: "x" }],
  ["subscribe", { url }],
];

const topics: readonly (readonly [string, string, number])[] = [
  ["an empty topic", "", 100103],
  ["a topic of spaces", "   ", 100103],
  ["a topic of 257 characters", "t".repeat(257), 100102],
  ["a topic with character 31", "a\u001fb", 100106],
  ["a topic with character 0", "a\u0000b", 100106],
  ["a topic with character 129", "a\u0081b", 100106],
  ["a topic with a non-ASCII letter", "tópico", 100106],
  ["a topic with an emoji", "a😀", 100106],
  ["a topic with a line break", "a\nb", 100106],
];
/** Bad topic names for every operation but `subscribe`, which takes filters: it accepts some of them, and refuses others with another code. */
const badNamesOnly: readonly (readonly [string, string, number])[] = [
  ["a topic with +", "a+b", 100106],
  ["a topic with #", "a#b", 100106],
  ["a pattern as a topic", "a/#", 100106],
  ["a topic that ends in /", "a/", 100106],
];

const groups: readonly (readonly [string, string, number])[] = [
  ["an unknown group", "2", 200211],
  ["a group with a space", "1 2", 100306],
  ["a group of 65 characters", "g".repeat(65), 100306],
  ["a group beyond ASCII", "gruppe-ä", 100306],
];

function topicCalls(): readonly BadCall[] {
  return topicOperations.flatMap(([operation, rest]) =>
    [...topics, ...(operation === "subscribe" ? [] : badNamesOnly)].map(([what, bad, code]) => ({
      what,
      operation,
      code,
      params: { ...rest, topic: bad },
    })),
  );
}

function groupCalls(): readonly BadCall[] {
  const operations: readonly (readonly [string, Params])[] = [
    ...topicOperations.map(([operation, rest]) => [operation, { ...rest, topic }] as const),
    ["getEvent", { eventId: "{event}" }],
    ["list", { pageIndex: 0, pageSize: 10 }],
  ];
  return operations.flatMap(([operation, params]) =>
    groups.map(([what, groupId, code]) => ({ what, operation, code, params: { ...params, groupId } })),
  );
}

const toCalls = (operation: string, rows: readonly (readonly [string, Params, number])[]): readonly BadCall[] =>
  rows.map(([what, params, code]) => ({ what, operation, params, code }));

const otherCalls: readonly BadCall[] = [
  ...toCalls("close", [["a topic that does not exist", { topic: "nowhere" }, 100101]]),
  ...toCalls("state", [["a topic that does not exist", { topic: "nowhere" }, 100101]]),
  ...toCalls("publish", [
    ["a topic that does not exist", { topic: "nowhere", content: "x" }, 100101],
    ["no topic", { content: "x" }, 200001],
    ["no content", { topic }, 200001],
    ["empty content", { topic, content: "" }, 100200],
    ["a closed topic", { topic: "bad/closed", content: "x" }, 100112],
  ]),
  {
    what: "content of 65,537 bytes",
    operation: "publish",
    params: { topic, content: "x".repeat(65_537) },
    code: 100201,
    isLong: true,
  },
  {
    what: "extensions of 4,097 bytes",
    operation: "publish",
    params: { topic, content: "x", extensions: { "svc-a": "x".repeat(4097 - 5) } },
    code: 100204,
    isLong: true,
  },
  ...toCalls("subscribe", [
    ["a topic that does not exist", { topic: "nowhere", url }, 100101],
    ["no url", { topic }, 200001],
    ["an empty url", { topic, url: "" }, 100501],
    ["a malformed url", { topic, url: "not a url" }, 100501],
    ["a relative url", { topic, url: "/hook" }, 100501],
    ["a url with another scheme", { topic, url: "ftp://127.0.0.1/" }, 100501],
    ["a file url", { topic, url: "file:///etc/passwd" }, 100501],
    ["a url with a password", { topic, url: "http://a:b@127.0.0.1/" }, 100501],
    ["a private address", { topic, url: "http://10.0.0.1/" }, 100501],
    ["a private address as IPv6", { topic, url: "http://[::ffff:192.168.1.1]/" }, 100501],
    ["a link-local address", { topic, url: "http://[fe80::1]/" }, 100501],
    ["the cloud metadata address", { topic, url: "http://169.254.169.254/latest" }, 100501],
    ["the cloud metadata address as one number", { topic, url: "http://2852039166/" }, 100501],
    ["# that is not last", { topic: "a/#/b", url }, 100109],
    ["# within a level", { topic: "a/b#", url }, 100109],
    ["+ within a level", { topic: "a/b+/c", url }, 100109],
    ["a subscriptionId that is not a UUID", { topic, url, subscriptionId: "mine" }, 100505],
    ["a UUID with braces", { topic, url, subscriptionId: `{${randomUUID()}}` }, 100505],
    ["an illegal offset", { topic, url, offset: "first" }, 100302],
    ["an offset that does not exist", { topic, url, offset: "ffffffff-1-1" }, 100303],
  ]),
  {
    what: "a url of 2,049 characters",
    operation: "subscribe",
    params: { topic, url: url.padEnd(2049, "x") },
    code: 100501,
    isLong: true,
  },
  ...toCalls("unSubscribe", [
    ["no subscriptionId", {}, 200001],
    ["an empty subscriptionId", { subscriptionId: "" }, 100503],
    ["a blank subscriptionId", { subscriptionId: " " }, 100503],
    ["a subscriptionId that is not a UUID", { subscriptionId: "mine" }, 100505],
    ["a subscriptionId that does not exist", { subscriptionId: randomUUID() }, 100504],
  ]),
  ...toCalls("getEvent", [
    ["no eventId", {}, 200001],
    ["an empty eventId", { eventId: "" }, 100300],
    ["a blank eventId", { eventId: "  " }, 100300],
    ["an eventId of 43 characters", { eventId: "f".repeat(43) }, 100301],
    ["an eventId in another form", { eventId: "mine" }, 100302],
    ["an eventId in upper case", { eventId: "ABCDEF01-1-1" }, 100302],
    ["an eventId with sequence 0", { eventId: "abcdef01-0-1" }, 100302],
    ["an eventId with a leading zero", { eventId: "abcdef01-01-1" }, 100302],
    ["an eventId with a negative sequence", { eventId: "abcdef01--1-1" }, 100302],
    ["an eventId with an unsafe number", { eventId: "abcdef01-9999999999999999-1" }, 100302],
    ["an eventId that does not exist", { eventId: "abcdef01-1-1" }, 100303],
    ["an eventId beyond the chain", { eventId: "abcdef01-1-999999" }, 100304],
  ]),
  ...toCalls("list", [
    ["a negative page", { pageIndex: -1, pageSize: 10 }, 100104],
    ["a fractional page", { pageIndex: 1.5, pageSize: 10 }, 100104],
  ]),
];

/** Every bad input that has its own code, for every operation that takes it. */
export const badCalls: readonly BadCall[] = [...topicCalls(), ...groupCalls(), ...otherCalls];
