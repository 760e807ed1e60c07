import { CloudEvent, HTTP } from "cloudevents";
import { describe, expect, it } from "vitest";
import type { CallbackTarget, Notification, NotifiedEvent } from "../../ports/sink.ts";
import { CallbackBodies, webhookIdOf } from "./callback-body.ts";
import { notificationTo } from "./testing/notification.ts";
import { startReceiver } from "./testing/receiver.ts";
import { makeSink, unaborted } from "./testing/sink.ts";

const bodies = new CallbackBodies({ extensionPrefix: "svc-", type: "stele.event" });
const origin = { source: "eip155:1:0x00000000000000000000000000000000000000aa", time: Date.UTC(2026, 10, 23) };

function notified(sequence: number, content: string, extensions: NotifiedEvent["event"]["extensions"]): NotifiedEvent {
  const { event } = notificationTo({});
  const eventId = `2cf24dba-${sequence}-1124` as NotifiedEvent["eventId"]; // It has the form of an eventId.
  return { event: { ...event, sequence, content: Buffer.from(content), extensions }, eventId, origin };
}

const json = notified(59, '{"n":1}', [
  ["svc-format", "json"],
  ["svc-order-id", '7 "ü" %'],
]);
const text = notified(60, "grüße", [["svc-format", "text/plain"]]);

function toNotification(changes: Partial<CallbackTarget>, batch?: readonly NotifiedEvent[]): Notification {
  const { subscription } = notificationTo(changes);
  return { subscription, ...(batch?.[0] ?? json), ...(batch && { batch }) };
}

/** The events that the CloudEvents project's library reads from the callback. It checks each attribute. */
function read(notification: Notification): readonly CloudEvent<unknown>[] {
  const { headers, body } = bodies.encode(notification);
  const event = HTTP.toEvent({ headers: { ...headers }, body: body.toString() });
  return [event].flat().map((one) => new CloudEvent(one));
}

describe("a callback as a CloudEvent", () => {
  it.each(["cloudevents", "cloudevents-binary"] as const)(
    "is readable by the CloudEvents project's library in the form %s",
    (form) => {
      const [event] = read(toNotification({ options: { form } }));
      expect(event?.validate()).toBe(true);
      expect(event).toMatchObject({
        id: "2cf24dba-59-1124",
        source: origin.source,
        subject: "com/example",
        type: "stele.event",
        time: "2026-11-23T00:00:00.000Z",
        datacontenttype: "application/json",
        sequence: "0000000000000059",
        data: { n: 1 },
      });
    },
  );

  it("in binary form has the content as its body, and percent-encoded attributes in headers", () => {
    const { headers, body } = bodies.encode(toNotification({ options: { form: "cloudevents-binary" } }));
    expect(body.toString()).toBe('{"n":1}');
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "ce-specversion": "1.0",
      "ce-orderid": "7%20%22%C3%BC%22%20%25",
    });
  });

  it("is structured if a secret signs it, since a signature does not cover headers", () => {
    const { headers } = bodies.encode(toNotification({ options: { form: "cloudevents-binary" }, secret: "s" }));
    expect(headers).toEqual({ "content-type": "application/cloudevents+json" });
  });

  it("is structured if its attributes would take more than 4 KiB in headers, which servers refuse", () => {
    const { subscription } = notificationTo({ options: { form: "cloudevents-binary" } });
    const typeOf = (note: string) =>
      bodies.encode({ subscription, ...notified(61, "1", [["svc-note", note]]) }).headers["content-type"];
    expect(typeOf("x".repeat(3_000))).toBe("application/octet-stream");
    expect(typeOf("ü".repeat(600))).toBe("application/octet-stream");
    expect(typeOf("ü".repeat(700))).toBe("application/cloudevents+json");
    expect(typeOf("\u0001".repeat(700))).toBe("application/cloudevents+json");
  });

  it("is structured if it has more than 64 attributes, which are too many headers for servers", () => {
    const { subscription } = notificationTo({ options: { form: "cloudevents-binary" } });
    const encode = (count: number) => {
      const extensions = Array.from({ length: count }, (_, at) => [`svc-a${at}`, "1"] as const);
      return bodies.encode({ subscription, ...notified(61, "1", extensions) }).headers;
    };
    const own = Object.keys(encode(0)).length;
    expect(Object.keys(encode(64 - own))).toHaveLength(64);
    expect(encode(65 - own)).toEqual({ "content-type": "application/cloudevents+json" });
  });

  it("counts the colon and the line break of each attribute", () => {
    const { subscription } = notificationTo({ options: { form: "cloudevents-binary" } });
    const extensions = Array.from({ length: 50 }, (_, at) => [`svc-${at + 10}`, "x".repeat(69)] as const);
    const { headers } = bodies.encode({ subscription, ...notified(61, "1", extensions) });
    expect(headers).toEqual({ "content-type": "application/cloudevents+json" });
  });

  it("in binary form is sent although its format names a type that no header may have", async () => {
    await using receiver = await startReceiver((response) => response.end());
    const { subscription } = notificationTo({ url: receiver.url, options: { form: "cloudevents-binary" } });
    const event = notified(61, "1", [["svc-format", "text/plain\n;a"]]);
    expect(await makeSink().attempt({ subscription, ...event }, unaborted)).toEqual({ status: "accepted" });
    expect(receiver.requests[0]?.headers["content-type"]).toBe("application/octet-stream");
  });

  it("of a batch has all its events, in order", () => {
    const notification = toNotification({ options: { form: "cloudevents", batchEvents: 2 } }, [json, text]);
    expect(read(notification).map(({ id, data }) => [id, data])).toEqual([
      ["2cf24dba-59-1124", { n: 1 }],
      ["2cf24dba-60-1124", "grüße"],
    ]);
  });
});

describe("a batch in the form interface", () => {
  const batch = [json, text];

  it("has every event, in order", () => {
    const { body } = bodies.encode(toNotification({ options: { batchEvents: 2 } }, batch));
    expect(JSON.parse(body.toString())).toMatchObject({
      subscriptionId: "6f5902ac-237e-4c1d-9bf6-3bcbb5f9a9c1",
      events: [{ eventId: "2cf24dba-59-1124" }, { eventId: "2cf24dba-60-1124" }],
    });
  });

  it("is one JSON-RPC request with an id of its own, and a response with that id is accepted", async () => {
    const notification = toNotification({ format: "JsonRPC", options: { batchEvents: 2 } }, batch);
    const id = webhookIdOf(notification);
    expect(id).toMatch(/^2cf24dba-59-1124-batch-2-[\da-f]{16}$/);
    expect(JSON.parse(bodies.encode(notification).body.toString())).toMatchObject({ id, method: "onEvents" });
    await using receiver = await startReceiver((response) =>
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result: 1 })),
    );
    const { subscription, ...rest } = notification;
    const outcome = await makeSink().attempt(
      { subscription: { ...subscription, url: receiver.url }, ...rest },
      unaborted,
    );
    expect(outcome).toEqual({ status: "accepted" });
    expect(receiver.requests[0]?.headers["webhook-id"]).toBe(id);
  });
});

const idOf = (...batch: readonly NotifiedEvent[]) => webhookIdOf(toNotification({}, batch));

it("the webhook-id of a batch is the same for the same events only", () => {
  // A change of concurrency may give the first event other companions.
  const other = notified(61, "1", []);
  expect(idOf(json, text)).toBe(idOf(json, text));
  expect(idOf(json, text)).not.toBe(idOf(json, other));
});

/** The traceparent header of a callback with one event, or with a batch. */
async function traceOf(one: NotifiedEvent, changes: Partial<CallbackTarget> = {}, batch?: readonly NotifiedEvent[]) {
  await using receiver = await startReceiver((response) => response.end());
  const { subscription } = notificationTo({ ...changes, url: receiver.url });
  await makeSink().attempt({ subscription, ...one, ...(batch && { batch }) }, unaborted);
  return receiver.requests[0]?.headers["traceparent"];
}

describe("the W3C trace of an event", () => {
  const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const traced = notified(61, "1", [["svc-traceparent", trace]]);

  it("is the traceparent header of a callback with one event, in the form interface and as a binary CloudEvent", async () => {
    expect(await traceOf(traced)).toBe(trace);
    expect(await traceOf(traced, { options: { form: "cloudevents-binary" } })).toBe(trace);
  });

  it("is in no header of a batch, and in no header if the publisher wrote an invalid trace or none", async () => {
    expect(await traceOf(traced, { options: { batchEvents: 2 } }, [traced])).toBeUndefined();
    expect(await traceOf(notified(61, "1", [["svc-traceparent", "x\r\ny: z"]]))).toBeUndefined();
    expect(await traceOf(json)).toBeUndefined();
  });
});
