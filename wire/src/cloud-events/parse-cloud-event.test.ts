import { CloudEvent, HTTP } from "cloudevents";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBrokerError } from "../errors/broker-error.ts";
import { parseCloudEvent, readBinaryCloudEvent, splitCloudEventBatch } from "./parse-cloud-event.ts";
import { readRawParts } from "./raw-json.ts";
import { renderCloudEvent } from "./render-cloud-event.ts";

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const event = { id: "7", source: "/shop", type: "com.acme.order", subject: "orders/new" };
const structured = (changes: object): string => JSON.stringify({ specversion: "1.0", ...event, ...changes });

function refusalOf(task: () => unknown): unknown {
  try {
    return task();
  } catch (error) {
    return error;
  }
}

describe("parsing CloudEvents", () => {
  it("parseCloudEvent turns an event of the cloudevents library into content and extensions", () => {
    const message = HTTP.structured(
      new CloudEvent({ ...event, data: { n: 1 }, orderid: "9", time: "2026-11-23T09:00:00.000Z" }),
    );
    const { subject, content, extensions } = parseCloudEvent(String(message.body), "svc-");
    expect([subject, text(content)]).toEqual(["orders/new", '{"n":1}']);
    expect(Object.fromEntries(extensions)).toEqual({
      "svc-ce-id": "7",
      "svc-ce-source": "/shop",
      "svc-ce-type": "com.acme.order",
      "svc-ce-subject": "orders/new",
      "svc-ce-time": "2026-11-23T09:00:00.000Z",
      "svc-format": "json",
      "svc-orderid": "9",
    });
  });

  it.each([
    ["JSON with a number beyond 2^53", '"data": {"n": 12345678901234567890}', '{"n": 12345678901234567890}'],
    ["a JSON string", '"data":"a"', '"a"'],
    ["text", '"datacontenttype":"text/plain","data":"grüße"', "grüße"],
    ["bytes", '"data_base64":"aGVsbG8="', "hello"],
    ["missing data", '"other":true', ""],
  ])("parseCloudEvent turns %s into content", (_, members, expected) => {
    const json = `${structured({}).slice(0, -1)},${members}}`;
    expect(text(parseCloudEvent(json, "svc-").content)).toBe(expected);
  });

  it("readBinaryCloudEvent returns the content unchanged and turns the attributes into extensions", () => {
    const attributes = new Map(Object.entries({ specversion: "1.0", ...event, datacontenttype: "text/plain" }));
    const { content, extensions } = readBinaryCloudEvent(attributes, new TextEncoder().encode("hi"), "x-");
    expect(text(content)).toBe("hi");
    expect(extensions).toContainEqual(["x-format", "text/plain"]);
  });

  it("splitCloudEventBatch returns one text for each event, which parseCloudEvent accepts", () => {
    const texts = splitCloudEventBatch(`[${structured({ id: "1" })}, ${structured({ id: "2" })}]`);
    const batch = texts.map((json) => parseCloudEvent(json, "svc-"));
    expect(batch.map(({ extensions }) => Object.fromEntries(extensions)["svc-ce-id"])).toEqual(["1", "2"]);
    expect(splitCloudEventBatch("[]")).toEqual([]);
  });

  it.each<readonly [string, string]>([
    ["no id", structured({ id: undefined })],
    ["a blank source", structured({ source: "" })],
    ["another version", structured({ specversion: "0.3" })],
    ["an attribute with an invalid name", structured({ "Order-Id": "1" })],
    ["an attribute that is an object", structured({ orderid: {} })],
    ["an attribute whose name the broker uses", structured({ format: "x" })],
    ["data twice", structured({ data: 1, data_base64: "" })],
    ["a member twice", structured({ order: "1" }).replace("}", ',"order":"2"}')],
    ["text with half a surrogate pair", structured({ datacontenttype: "text/plain", data: "\ud800" })],
    ["data that is not Base64", structured({ data_base64: "?" })],
    ...["A", "AA", "AAA", "AA=", "=", "====", "A===", "AAAA====", "AA=A", "AA==AAAA", "AAA\n"].map(
      (text) => [`data that is not wholly Base64, ${JSON.stringify(text)}`, structured({ data_base64: text })] as const,
    ),
  ])("parseCloudEvent refuses an event with %s", (_, json) => {
    expect(
      isBrokerError(
        refusalOf(() => parseCloudEvent(json, "svc-")),
        "parameterInvalid",
      ),
    ).toBe(true);
  });

  it.each([
    ["sequence", "99"],
    ["data", "x", "binary"],
    ["database64", "x"],
    ["otherextensions", "{}"],
    ["format", "x"],
    ["time", "not-a-time"],
    ["time", "2026-02-31T00:00:00Z"],
    ["time", "2026-02-01"],
    ["dataschema", ""],
    ["dataschema", "/schemas/order"],
    ["datacontenttype", "no type"],
    ["orderid", "a\u0007"],
  ])("the refusal of an event names its attribute %s, whose value is %j", (name, value, mode = "structured") => {
    const attributes = new Map(Object.entries({ specversion: "1.0", ...event, [name]: value }));
    const parse = (): unknown =>
      mode === "binary"
        ? readBinaryCloudEvent(attributes, new Uint8Array(), "svc-")
        : parseCloudEvent(structured({ [name]: value }), "svc-");
    const refusal = refusalOf(parse);
    expect(isBrokerError(refusal, "parameterInvalid")).toBe(true);
    expect(String(refusal)).toContain(`attribute ${name} `);
  });

  it("renderCloudEvent returns every attribute that parseCloudEvent accepted, except those that the broker sets", () => {
    const given = { dataschema: "urn:order", orderid: "9", number: -12, flag: true, time: "2026-11-23T09:00:00+01:00" };
    const { content, extensions } = parseCloudEvent(
      structured({ ...given, datacontenttype: "text/x!y", data: "x" }),
      "svc-",
    );
    const place = { eventId: "1-1-1", topic: "orders/new", sequence: 1, source: "s", type: "t", time: undefined };
    const back = renderCloudEvent({ ...place, content, extensions, extensionPrefix: "svc-", base64: () => "" });
    expect(JSON.parse(back)).toEqual({
      specversion: "1.0",
      id: "1-1-1",
      source: "s",
      type: "com.acme.order",
      subject: "orders/new",
      datacontenttype: "text/x!y",
      dataschema: "urn:order",
      sequence: "0000000000000001",
      orderid: "9",
      number: "-12",
      flag: "true",
      data: "x",
    });
  });

  it("parseCloudEvent keeps every digit of an integer attribute below -2^53", () => {
    const json = `${structured({}).slice(0, -1)},"order": -9007199254740993 }`;
    expect(parseCloudEvent(json, "svc-").extensions).toContainEqual(["svc-order", "-9007199254740993"]);
  });

  it("splitCloudEventBatch refuses an event that is not an object", () => {
    expect(
      isBrokerError(
        refusalOf(() => splitCloudEventBatch("[1]")),
        "parameterInvalid",
      ),
    ).toBe(true);
  });
});

it("readRawParts returns the text of each value of any JSON object or array", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2), (value, space) => {
      const object = readRawParts(JSON.stringify({ 'a"]': value, b: [value] }, undefined, space));
      expect(object.map(([name, part]) => [name, JSON.parse(part)])).toEqual([
        ['a"]', JSON.parse(JSON.stringify(value))],
        ["b", JSON.parse(JSON.stringify([value]))],
      ]);
      const list = readRawParts(JSON.stringify([value, value], undefined, space));
      expect(list.map(([, part]) => JSON.parse(part) as unknown)).toEqual(JSON.parse(JSON.stringify([value, value])));
    }),
  );
});
