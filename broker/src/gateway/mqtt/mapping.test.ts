import { expect, it } from "vitest";
import type { Extensions } from "../../domain/event.ts";
import type { Delivery } from "../../engine/session/peer.ts";
import { encodePublish } from "./codec/encode-packet.ts";
import { toExtensions, toPublish } from "./mapping.ts";

interface PublishOptions {
  readonly payload?: "raw" | "event";
  readonly now?: number;
  readonly isRepeated?: boolean;
  readonly hasEventPlace?: boolean | "too-long";
}

function publishOf(extensions: Extensions, options: PublishOptions = {}) {
  const { payload = "raw", now = 0, isRepeated = false, hasEventPlace = false } = options;
  const event = { topic: "a", content: new Uint8Array([1, 2]), extensions, sequence: 7, blockNumber: 9 };
  const delivery = { event, eventId: "", qos: 0, ticket: undefined, isRepeated, filters: [] };
  // `toPublish` reads only these fields of a delivery.
  return toPublish(delivery as unknown as Delivery, { prefix: "svc-", now, hasEventPlace, payload });
}

function fieldsOf(extensions: Extensions, payload: "raw" | "event" = "raw") {
  const fields = publishOf(extensions, { payload });
  if (fields === undefined) throw new Error("expired");
  encodePublish(fields, 5);
  return fields;
}

const propertiesOf = (extensions: Extensions) => fieldsOf(extensions).properties;

const longest = "x".repeat(65_535);
const tooLong = "ü".repeat(32_768); // 65,536 bytes

it("leaves out properties whose name or value is longer than MQTT can encode", () => {
  const found = propertiesOf([
    [`svc-user-${longest}`, "name"],
    [`svc-user-${tooLong}`, "long name"],
    ["svc-user-v", longest],
    ["svc-user-w", tooLong],
    ["svc-content-type", tooLong],
    ["svc-response-topic", tooLong],
    ["svc-correlation-data", Buffer.alloc(65_536).toString("base64")],
  ]);
  expect(found).toEqual({
    userProperties: [
      [longest, "name"],
      ["v", longest],
    ],
  });
});

it.each(["", "a/#", "+/b", "nul\0"])("leaves out the response topic %j, which MQTT forbids", (responseTopic) => {
  expect(propertiesOf([["svc-response-topic", responseTopic]])).toEqual({ userProperties: [] });
});

it.each([
  [false, 1_000, 1],
  [false, 2_000, undefined],
  [true, 2_000, 0],
  [true, 9_000, 0],
])(
  "an event that expires at 2,000 ms (repeated: %s), sent at %i ms, has the expiry interval %s (undefined: it is not sent)",
  (isRepeated, now, left) => {
    const fields = publishOf([["svc-expires-at", "2000"]], { isRepeated, now });
    expect(fields?.properties?.messageExpiryInterval).toBe(left);
    expect(fields === undefined).toBe(left === undefined);
  },
);

it("does not pass on the extensions `qos` and `origin`, in which the gateway records how an event was published", () => {
  expect(
    propertiesOf([
      ["svc-origin", "5d"],
      ["svc-qos", "0"],
      ["svc-other", "y"],
    ]),
  ).toEqual({
    userProperties: [["svc-other", "y"]],
  });
});

it.each([
  [true, "the event's own", { "svc-eventId": [""], "svc-sequence": ["7"], "svc-block": ["9"], "svc-other": ["y"] }],
  ["too-long", "left out", { "svc-other": ["y"] }],
  [false, "the publisher's", { "svc-eventId": ["a-1-2", "a-1-3"], "svc-sequence": ["1"], "svc-other": ["y"] }],
] as const)(
  "with hasEventPlace %s, the user properties svc-eventId, svc-sequence and svc-block are %s",
  (hasEventPlace, _, expected) => {
    const published: Extensions = [
      ["svc-eventId", "a-1-2"],
      ["svc-user-svc-eventId", "a-1-3"],
      ["svc-sequence", "1"],
      ["svc-other", "y"],
    ];
    const given: Record<string, string[]> = {};
    for (const [name, value] of publishOf(published, { hasEventPlace })?.properties?.userProperties ?? []) {
      (given[name] ??= []).push(value);
    }
    expect(given).toEqual(expected);
  },
);

it("sends the event as JSON, and no user properties, if the payload setting is event", () => {
  const extensions = [
    ["svc-other", "ü"],
    ["svc-content-type", "text/plain"],
    ["svc-response-topic", "answers"],
  ] as const;
  const { payload, properties } = fieldsOf(extensions, "event");
  expect(JSON.parse(payload.toString())).toEqual({
    topic: "a",
    content: "AQI=",
    extensions: Object.fromEntries(extensions),
    eventId: "",
  });
  expect(properties).toEqual({
    userProperties: [],
    contentType: "application/json",
    payloadFormatIndicator: 1,
    responseTopic: "answers",
  });
});

it("converts the user property traceparent to the extension svc-traceparent (not svc-user-traceparent), and back", () => {
  const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const properties = { userProperties: [["traceparent", trace]] } as const;
  const packet = { qos: 1, isRetained: false, properties } as unknown as Parameters<typeof toExtensions>[0]; // `toExtensions` reads only these fields of a packet.
  const extensions = toExtensions(packet, { prefix: "svc-", now: 0 });
  expect(extensions).toEqual([["svc-traceparent", trace]]);
  expect(propertiesOf(extensions)).toEqual({ userProperties: [["traceparent", trace]] });
});
