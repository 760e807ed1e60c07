import { type CloudEvent, HTTP } from "cloudevents";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CloudEventSource, renderCloudEvent, toAttributeName } from "./render-cloud-event.ts";

const text = (value: string): Uint8Array => new TextEncoder().encode(value);

function toSource(changes: Partial<CloudEventSource> = {}): CloudEventSource {
  const content = changes.content ?? text('{"n":1}');
  return {
    eventId: "2cf24dba-59-1124",
    topic: "orders/new",
    sequence: 59,
    content,
    base64: () => Buffer.from(content).toString("base64"),
    extensions: [],
    extensionPrefix: "svc-",
    source: "eip155:20261:0x00000000000000000000000000000000000000aa",
    type: "stele.event",
    time: Date.UTC(2026, 10, 23, 9),
    ...changes,
  };
}

/** The event as the CloudEvents project's library reads it. The library checks each attribute. */
function read(source: CloudEventSource): CloudEvent<unknown> {
  const body = renderCloudEvent(source);
  const event = HTTP.toEvent({ headers: { "content-type": "application/cloudevents+json" }, body });
  if (Array.isArray(event)) throw new Error("one event was rendered");
  expect((event as CloudEvent<unknown>).validate()).toBe(true);
  return event as CloudEvent<unknown>; // It is not a batch.
}

describe("renderCloudEvent", () => {
  it("renderCloudEvent renders eventId, topic, sequence and time as attributes", () => {
    expect(read(toSource()).toJSON()).toMatchObject({
      specversion: "1.0",
      id: "2cf24dba-59-1124",
      source: "eip155:20261:0x00000000000000000000000000000000000000aa",
      subject: "orders/new",
      time: "2026-11-23T09:00:00.000Z",
      type: "stele.event",
      sequence: "0000000000000059",
    });
    expect(JSON.parse(renderCloudEvent(toSource({ time: undefined })))).not.toHaveProperty("time");
  });

  it.each([Date.UTC(10_000, 0, 1), 1.7e21])(
    "renderCloudEvent leaves out the time if RFC 3339 cannot express %d ms",
    (time) => {
      expect(JSON.parse(renderCloudEvent(toSource({ time })))).not.toHaveProperty("time");
      expect(read(toSource({ time: Date.UTC(10_000, 0, 1) - 1000 })).time).toBe("9999-12-31T23:59:59.000Z");
    },
  );

  it("renderCloudEvent renders JSON content unchanged except for line breaks, even numbers beyond 2^53", () => {
    const content = text('{ "n": 12345678901234567890,\n "s": "a\\nb" }');
    const body = renderCloudEvent(toSource({ content, extensions: [["svc-format", "json"]] }));
    expect(body).toContain('"datacontenttype":"application/json"');
    expect(body).toContain('"data":{ "n": 12345678901234567890,  "s": "a\\nb" }');
    expect(body).not.toContain("\n");
  });

  it.each([
    ["text/plain; charset=utf-8", "ü", "ü"],
    ["application/vnd.acme+json", '{"a":[1]}', { a: [1] }],
  ])("renderCloudEvent renders content of type %s as data", (format, content, data) => {
    const event = read(toSource({ content: text(content), extensions: [["svc-format", format]] }));
    expect(event.datacontenttype).toBe(format);
    expect(event.data).toEqual(data);
  });

  it("renderCloudEvent keeps the byte order mark of a text", () => {
    const event = read(toSource({ content: text("\uFEFFa"), extensions: [["svc-format", "text/plain"]] }));
    expect(event.data).toBe("\uFEFFa");
  });

  it.each([
    ["json", Uint8Array.of(0x7b)],
    ["json", text("\uFEFF{}")],
    ["json", Uint8Array.of(0xff, 0xfe)],
    ["text/plain", Uint8Array.of(0xff)],
    ["application/octet-stream", text("{}")],
    ["no type", text("{}")],
  ])(
    "renderCloudEvent renders content in Base64 if its format %s is neither text nor JSON, or the content does not have that format",
    (format, content) => {
      const body = JSON.parse(renderCloudEvent(toSource({ content, extensions: [["svc-format", format]] }))) as object;
      expect(body).toHaveProperty("data_base64", Buffer.from(content).toString("base64"));
      expect(body).not.toHaveProperty("data");
    },
  );

  it("renderCloudEvent renders extensions as attributes, and lists those that cannot be attributes in otherextensions by their keys", () => {
    const extensions: readonly (readonly [string, string])[] = [
      ["svc-Order-Id", "7"],
      ["svc-order_id", "8"],
      ["svc-id", "mine"],
      ["svc-sequence", "99"],
      ["svc-data", "x"],
      ["svc-", "empty"],
      ["svc-line", "a\nb\x85\ud800"],
      ["svc-otherextensions", "{}"],
      ["svc-ce-type", "com.acme.order.placed"],
      ["svc-ce-id", "of the publisher"],
    ];
    const event = read(toSource({ extensions }));
    expect(event["orderid"]).toBe("7");
    expect(event.type).toBe("com.acme.order.placed");
    expect(event.id).toBe("2cf24dba-59-1124");
    expect(event).not.toHaveProperty("line");
    expect(event).not.toHaveProperty("cetype");
    const others = String(event["otherextensions"]);
    expect(others).toMatch(/^[\x20-\x7e]+$/);
    expect(JSON.parse(others)).toEqual(Object.fromEntries(extensions.slice(1, 8)));
  });

  it.each([
    ["svc-format", "no type"],
    ["svc-format", "text/plain\n;a"],
    ["svc-format", "text/plain\u2028;a"],
    ["svc-ce-type", "a\tb"],
    ["svc-ce-type", ""],
    ["svc-ce-dataschema", ""],
    ["svc-ce-dataschema", "/schemas/order"],
    ["svc-ce-dataschema", "https://schemas.example/an order"],
    ["svc-ce-dataschema", "https://schemas.example/%zz"],
    ["svc-ce-dataschema", "https://schemas.example/order?a=[b]"],
    ["svc-ce-dataschema", "https://schemas.example/order#a#b"],
    ["svc-ce-dataschema", "https://schemas.example:port/order"],
    ["svc-ce-dataschema", "https://[1]/order"],
    ["svc-ce-dataschema", "urn:"],
  ])("renderCloudEvent lists the extension %s in otherextensions if its value is %j", (key, value) => {
    const event = read(toSource({ extensions: [[key, value]] }));
    expect(event.toJSON()).toMatchObject({ type: "stele.event", datacontenttype: "application/octet-stream" });
    expect(JSON.parse(String(event["otherextensions"]))).toEqual({ [key]: value });
  });

  it("renderCloudEvent leaves out otherextensions if each extension is an attribute", () => {
    const extensions: readonly (readonly [string, string])[] = [
      ["svc-format", "json"],
      ["svc-order-id", ""],
    ];
    expect(JSON.parse(renderCloudEvent(toSource({ extensions })))).not.toHaveProperty("otherextensions");
  });

  it.each([
    "https://schemas.example/order%20v1?a=b/c?#d",
    "https://user@schemas.example:8443",
    "https://[2001:db8::1]:8443/order",
    "file:///schemas/order",
    "urn:order:v1",
  ])("renderCloudEvent has the dataschema %s", (uri) => {
    const event = read(toSource({ extensions: [["svc-ce-dataschema", uri]] }));
    expect(event.toJSON()).toMatchObject({ dataschema: uri });
    expect(event).not.toHaveProperty("otherextensions");
  });

  it("renderCloudEvent has no dataschema that the CloudEvents project's library refuses", () => {
    const part = fc.constantFrom("a", "1", ":", "/", "//", "?", "#", "[", "]", "@", "%", "%20", ".", "::1", "[::1]");
    const uris = fc.array(part, { maxLength: 8 }).map((parts) => `s:${parts.join("")}`);
    fc.assert(fc.property(uris, (uri) => void read(toSource({ extensions: [["svc-ce-dataschema", uri]] }))));
  });
});

it("toAttributeName returns undefined for an extension whose attribute name is taken", () => {
  const names = [
    "specversion",
    "id",
    "source",
    "type",
    "subject",
    "time",
    "data",
    "data_base64",
    "Sequence",
    "other-extensions",
  ];
  for (const name of names) expect(toAttributeName(`svc-${name}`, "svc-")).toBeUndefined();
});
