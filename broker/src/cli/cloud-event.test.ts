import type { Publication } from "@stele/client";
import { renderCloudEvent } from "@stele/wire";
import { describe, expect, it } from "vitest";
import { fromCloudEvent } from "./cloud-event.ts";
import { UsageError } from "./io.ts";

const common = { topic: "", once: true, prefix: "svc-" };

function read(members: string, options = {}, id = "1") {
  const line = `{"specversion":"1.0","id":"${id}","source":"/s","type":"t","subject":"orders/new"${members}}`;
  return fromCloudEvent(Buffer.from(line), { ...common, ...options });
}

function textOf({ content }: Publication): string {
  if (!(content instanceof Uint8Array)) throw new Error("the content is not a Uint8Array");
  return new TextDecoder().decode(content);
}

describe("fromCloudEvent", () => {
  it.each([
    ['{"a":12345678901234567890}', "digits beyond 2^53"],
    ['{ "a": 1,  "a": 2 }', "a key twice, and spaces"],
    ["1.50", "a number with a trailing zero"],
    ['"\\u00fc"', "a text with an escape"],
  ])("keeps the text of the data %s: %s", (data) => {
    expect(textOf(read(`,"data":${data}`))).toBe(data);
  });

  it("reads the content from `data` with datacontenttype text/plain, and from `data_base64`", () => {
    expect(textOf(read(',"datacontenttype":"text/plain","data":"grüße"'))).toBe("grüße");
    expect(textOf(read(',"data_base64":"aGVsbG8="'))).toBe("hello");
  });

  it("keeps attributes as extensions, as the broker does over HTTP", () => {
    expect(read(',"orderid":"9","data":1', { extensions: { "svc-x": "y" } })).toMatchObject({
      topic: "orders/new",
      extensions: {
        "svc-ce-id": "1",
        "svc-ce-source": "/s",
        "svc-ce-type": "t",
        "svc-ce-subject": "orders/new",
        "svc-format": "json",
        "svc-orderid": "9",
        "svc-x": "y",
      },
    });
  });

  it("restores every extension of an event that a tail wrote, even those that cannot be CloudEvents attributes", () => {
    const extensions = {
      "svc-format": "json",
      "svc-ce-type": "com.acme.order",
      "svc-ce-dataschema": "urn:order",
      "svc-orderid": "7",
      "svc-order-id": "8",
      "svc-sequence": "99",
      "svc-line": "a\nb",
    };
    const line = renderCloudEvent({
      eventId: "2cf24dba-59-1124",
      topic: "orders/new",
      sequence: 59,
      content: new TextEncoder().encode("{}"),
      base64: () => "",
      extensions: Object.entries(extensions),
      extensionPrefix: "svc-",
      source: "eip155:20261:0x00000000000000000000000000000000000000aa",
      type: "stele.event",
      time: 0,
    });
    const publication = fromCloudEvent(Buffer.from(line), common);
    expect(publication).toMatchObject({ topic: "orders/new", extensions });
    expect(textOf(publication)).toBe("{}");
  });

  it("keeps a dataschema that is not an absolute URI, which a tail of an earlier version wrote", () => {
    const { extensions } = read(',"dataschema":"/schemas/order","data":1');
    expect(extensions).toMatchObject({ "svc-ce-dataschema": "/schemas/order" });
    expect(() => read(',"dataschema":"","data":1')).toThrow(UsageError);
  });

  it("derives the publish key from source and id, and has none without once", () => {
    expect(read(',"data":1').once).toBe(read(',"data":2').once);
    expect(read(',"data":1').once).not.toBe(read(',"data":1', {}, "2").once);
    expect(read(',"data":1', { once: undefined }).once).toBeUndefined();
  });

  it("uses the command's topic instead of the subject, if the command names one", () => {
    expect(read(',"data":1', { topic: "paid" }).topic).toBe("paid");
  });

  it.each([
    ["malformed JSON", Buffer.from("{"), "not a JSON object"],
    ["an array", Buffer.from("[1]"), "not a JSON object"],
    ["bytes that are not UTF-8", Buffer.from('{"id":"\u00ff"}', "latin1"), "not a JSON object"],
    ["an event without a type", Buffer.from('{"specversion":"1.0","id":"1","source":"/s"}'), "the attribute type"],
    [
      "an event without a subject",
      Buffer.from('{"specversion":"1.0","id":"1","source":"/s","type":"t"}'),
      "give a topic",
    ],
  ])("refuses %s", (_what, line, reason) => {
    const parse = () => fromCloudEvent(line, common);
    expect(parse).toThrow(UsageError);
    expect(parse).toThrow(reason);
  });
});
