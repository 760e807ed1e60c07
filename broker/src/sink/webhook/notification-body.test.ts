import { expect, test } from "vitest";
import { parseAnySubscriptionId } from "../../domain/subscription.ts";
import { encodePing } from "./consent/ping.ts";
import { NotificationEncoder } from "./notification-body.ts";
import { notificationTo, sampleEvent } from "./testing/notification.ts";

const event = {
  topic: "com/example",
  content: "aGVsbG8=",
  extensions: { "svc-format": "json", "svc-note": "ä" },
  eventId: "2cf24dba-59-1124",
};
const subscriptionId = "6f5902ac-237e-4c1d-9bf6-3bcbb5f9a9c1";

const encoder = new NotificationEncoder();

test("a RESTful body has the subscription's identifier and the event", () => {
  const body: unknown = JSON.parse(encoder.encode(notificationTo({ format: "RESTful" })).toString());
  expect(body).toEqual({ subscriptionId, event });
});

test("a JsonRPC body is a request with the method onEvent and the eventId as id", () => {
  const body: unknown = JSON.parse(encoder.encodeCall(notificationTo({ format: "JsonRPC" }), event.eventId).toString());
  expect(body).toEqual({
    jsonrpc: "2.0",
    id: "2cf24dba-59-1124",
    method: "onEvent",
    params: { subscriptionId, event },
  });
});

test("leaves the tenant out of the identifier, in callbacks and pings", () => {
  const id = parseAnySubscriptionId(`acme/${subscriptionId}`);
  for (const format of ["RESTful", "JsonRPC"] as const) {
    const { subscription, ...rest } = notificationTo({ format });
    const target = { ...subscription, id };
    const notification = { ...rest, subscription: target };
    const bodies = [encoder.encode(notification), encodePing(target, "ping")].map(String);
    for (const body of bodies) {
      expect(body).toContain(`"subscriptionId":"${subscriptionId}"`);
      expect(body).not.toContain("acme");
    }
  }
});

test("preserves every byte of the content", () => {
  const content = Uint8Array.from({ length: 300 }, (_, index) => index % 256).subarray(7, 290);
  const notification = { ...notificationTo({}), event: { ...sampleEvent, content } };
  const body = JSON.parse(encoder.encode(notification).toString()) as { event: { content: string } };
  expect(Buffer.from(body.event.content, "base64")).toEqual(Buffer.from(content));
});

test("encodes an event once for all its subscriptions", () => {
  let reads = 0;
  const observed = Object.defineProperty({ ...sampleEvent }, "content", {
    get: () => {
      reads += 1;
      return sampleEvent.content;
    },
  });
  for (let round = 0; round < 50; round += 1) encoder.encode({ ...notificationTo({}), event: observed });
  expect(reads).toBe(1);
});

test("an extension named __proto__ is an ordinary extension", () => {
  const extensions = [["__proto__", "x"]] as const;
  const body = encoder.encode({ ...notificationTo({}), event: { ...sampleEvent, extensions } }).toString();
  expect(body).toContain('"extensions":{"__proto__":"x"}');
});

test("omits the tenant from the identifier in `encode` and `encodeCall`", () => {
  const notification = notificationTo({ id: parseAnySubscriptionId(`acme/${subscriptionId}`) });
  for (const body of [encoder.encode(notification), encoder.encodeCall(notification, "x")]) {
    expect(body.toString()).toContain(`"subscriptionId":"${subscriptionId}"`);
  }
});
