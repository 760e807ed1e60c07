import { beforeAll, describe, expect, it } from "vitest";
import type { HttpAnswer, HttpRequest } from "../../harness/http-client.ts";
import { useWorld } from "../../harness/use.ts";
import { embeddedWorld } from "../../harness/world.ts";
import { expectUnchanged } from "../unchanged.ts";

const running = useWorld(embeddedWorld);
const form = { "content-type": "application/x-www-form-urlencoded" };
const json = { "content-type": "application/json" };

beforeAll(async () => {
  await running().client.open("rest");
});

function send(request: HttpRequest): Promise<HttpAnswer> {
  return running().client.http.send(request);
}

function expectException(answer: HttpAnswer, code: number): void {
  expect(answer.status).toBe(200);
  expect(answer.headers["content-type"]).toMatch(/^application\/json/);
  expect(answer.json()).toEqual({ code, message: expect.stringMatching(/./) });
}

/** A publish query of `bytes` bytes. */
function toQuery(bytes: number): string {
  return "topic=rest&content=".padEnd(bytes, "x");
}

function askList(body: string): Promise<HttpAnswer> {
  return send({ method: "POST", path: "/rest/list", headers: json, body });
}

function toPublish(content: string): HttpRequest {
  const body = new URLSearchParams({ topic: "rest", content }).toString();
  return { method: "POST", path: "/rest/publish", headers: form, body };
}

/** Checks that the broker refuses the request with this code, and that nothing changes. */
async function expectRefused(request: HttpRequest, code = 200001): Promise<void> {
  await expectUnchanged(running().client, async () => expectException(await send(request), code));
}

describe("INTERFACE.md, Common shape of the REST interface", () => {
  it("output is status 200 and application/json", async () => {
    const answer = await send({ method: "GET", path: "/rest/exist?topic=rest" });
    expect(answer).toMatchObject({ status: 200, text: "true" });
    expect(answer.headers["content-type"]).toMatch(/^application\/json/);
  });

  it("a failure has status 200 and a BrokerException of code and message", async () => {
    expectException(await send({ method: "GET", path: "/rest/state?topic=none" }), 100101);
  });

  it("unknown paths and other methods under /rest return 200001 as a BrokerException", async () => {
    await expectRefused({ method: "GET", path: "/rest/nothing" });
    await expectRefused({ method: "GET", path: "/rest/Open?topic=x" });
    await expectRefused({ method: "GET", path: "/rest/" });
    await expectRefused({ method: "GET", path: "/rest" });
    await expectRefused({ method: "GET", path: "/rest/open/x?topic=x" });
    await expectRefused({ method: "PUT", path: "/rest/open?topic=x" });
    await expectRefused({ method: "DELETE", path: "/rest/open?topic=x" });
    await expectRefused({ method: "PATCH", path: "/rest/open?topic=x" });
  });

  it("HEAD and OPTIONS execute nothing", async () => {
    await expectUnchanged(running().client, async () => {
      await send({ method: "HEAD", path: "/rest/open?topic=x" });
      await send({ method: "OPTIONS", path: "/rest/open?topic=x" });
    });
  });

  it("unknown paths outside /rest return 404, and / returns 200", async () => {
    for (const path of ["/", "/nothing", "/restless/open?topic=x", "/admin/nothing", "/..%2frest/open?topic=x"]) {
      const { status } = await send({ method: "GET", path });
      expect(`${path}: ${status}`).toBe(`${path}: ${path === "/" ? 200 : 404}`);
    }
  });

  it("the query of a GET has at most 1,024 bytes; one of 1,025 bytes is refused with the advice to use POST (INTERFACE.md, Limits)", async () => {
    const before = (await running().client.state("rest")).sequenceNumber;
    expect((await send({ method: "GET", path: `/rest/publish?${toQuery(1024)}` })).json()).toMatchObject({
      status: "SUCCESS",
    });
    expect((await running().client.state("rest")).sequenceNumber).toBe(before + 1);
    await expectRefused({ method: "GET", path: `/rest/publish?${toQuery(1025)}` });
    expect((await send({ method: "GET", path: `/rest/publish?${toQuery(1025)}` })).text).toMatch(/POST/);
    expect((await send({ method: "POST", path: `/rest/publish?${toQuery(1025)}` })).json()).toMatchObject({
      status: "SUCCESS",
    });
  });

  it("a query too long for an HTTP request is refused with a BrokerException", async () => {
    await expectRefused({ method: "GET", path: `/rest/publish?topic=rest&content=${"x".repeat(40_000)}` });
  });

  it.each(["topic=%", "topic=%4", "topic=%zz", "topic=%ff", "topic=%c3%28", "topic=%ed%a0%80"])(
    "the query or form %s is not URL-encoded UTF-8, and is refused",
    async (query) => {
      await expectRefused({ method: "GET", path: `/rest/open?${query}` });
      await expectRefused({ method: "POST", path: "/rest/open", headers: form, body: query });
    },
  );

  it("a parameter given twice is refused, in a query or in query and body", async () => {
    await expectRefused({ method: "GET", path: "/rest/open?topic=x&topic=x" });
    await expectRefused({ method: "POST", path: "/rest/open?topic=x", headers: form, body: "topic=x" });
    await expectRefused({ method: "POST", path: "/rest/open?topic=x", headers: json, body: '{"topic":"x"}' });
  });

  it.each(['{"topic":"x","topic":"x"}', '{"topic":"x","t\\u006fpic":"y"}', '{"topic":null,"topic":"x"}'])(
    "the JSON body %s gives a parameter twice, and is refused",
    async (body) => {
      await expectRefused({ method: "POST", path: "/rest/open", headers: json, body });
    },
  );

  it("an extension given twice in JSON is refused", async () => {
    for (const extensions of ['"svc-a":"1","svc-a":"2"', '"extensions":{"svc-a":"1","svc-a":"2"}']) {
      const body = `{"topic":"rest","content":"x",${extensions}}`;
      await expectRefused({ method: "POST", path: "/rest/publish", headers: json, body });
    }
  });

  it("parameters of the query and of the body are combined", async () => {
    const request = {
      method: "POST",
      path: "/rest/publish?topic=rest",
      headers: form,
      body: "content=x&svc-a=b",
    } as const;
    const { eventId } = (await send(request)).json() as { eventId: string };
    expect((await running().client.getEvent(eventId)).extensions).toEqual({ "svc-a": "b" });
  });

  it("unknown parameters are ignored in a query and a form", async () => {
    const request = { method: "POST", path: "/rest/exist?x=1", headers: form, body: "topic=rest&y=2" } as const;
    expect((await send(request)).text).toBe("true");
  });

  it("unknown members of a JSON body are refused", async () => {
    await expectRefused({ method: "POST", path: "/rest/open", headers: json, body: '{"topic":"x","y":{"z":1}}' });
  });

  it("extensions may be an object in JSON", async () => {
    const body = '{"topic":"rest","content":"x","extensions":{"svc-a":"b"}}';
    const { eventId } = (await send({ method: "POST", path: "/rest/publish", headers: json, body })).json() as {
      eventId: string;
    };
    expect((await running().client.getEvent(eventId)).extensions).toEqual({ "svc-a": "b" });
  });

  it.each(["", "&", "&&topic=rest", "topic=rest&", "topic=rest&&"])(
    "stray separators as in %j are ignored",
    async (query) => {
      const answer = await send({ method: "GET", path: `/rest/exist?${query}` });
      if (query.includes("topic")) expect(answer.text).toBe("true");
      else expectException(answer, 200001);
    },
  );

  it("names of parameters are case-sensitive", async () => {
    await expectRefused({ method: "GET", path: "/rest/open?Topic=x" });
  });
});

describe("bodies of POST", () => {
  it.each([
    ["not JSON", "{"],
    ["nothing but a byte order mark", "\ufeff"],
    ["an array", '["x"]'],
    ["null", "null"],
    ["text", '"x"'],
    ["a number instead of text", '{"topic":1}'],
    ["an object instead of text", '{"topic":{"a":1}}'],
    ["a list instead of text", '{"topic":["x"]}'],
    ["true instead of text", '{"topic":true}'],
    ["null for a required parameter", '{"topic":null}'],
    ["half a surrogate pair", '{"topic":"\\ud800"}'],
    ["no topic", "{}"],
    ["trailing text", '{"topic":"x"} x'],
  ])("a JSON body is refused: %s", async (_what, body) => {
    await expectRefused({ method: "POST", path: "/rest/open", headers: json, body });
  });

  it("bytes that are not UTF-8 are refused", async () => {
    const body = Buffer.from('{"topic":"\xff"}', "latin1");
    await expectRefused({ method: "POST", path: "/rest/open", headers: json, body });
    await expectRefused({
      method: "POST",
      path: "/rest/open",
      headers: form,
      body: Buffer.from("topic=\xff", "latin1"),
    });
  });

  it.each([
    "text/plain",
    "application/xml",
    "multipart/form-data; boundary=x",
    "application/json; charset=utf-16",
    "x",
  ])("content type %s is refused", async (type) => {
    await expectRefused({
      method: "POST",
      path: "/rest/open",
      headers: { "content-type": type },
      body: '{"topic":"x"}',
    });
  });

  it("a body needs a content type; a request without a body needs none", async () => {
    await expectRefused({ method: "POST", path: "/rest/open", body: "topic=x" });
    expect((await send({ method: "POST", path: "/rest/exist?topic=rest" })).text).toBe("true");
  });

  it("pageIndex and pageSize may be JSON integers or their text", async () => {
    expect((await askList('{"pageIndex":0,"pageSize":5}')).json()).toMatchObject({ pageIndex: 0, pageSize: 5 });
    expect((await askList('{"pageIndex":"0","pageSize":"5"}')).json()).toMatchObject({ pageIndex: 0, pageSize: 5 });
    for (const pageIndex of ['"x"', "1.5", '""', "-1", '"1e3"', '"0x1"', '" 1"']) {
      expectException(await askList(`{"pageIndex":${pageIndex}}`), 100104);
    }
    for (const pageSize of ["1e21", "123456789012345678901234567890", '"123456789012345678901234567890"']) {
      expect((await askList(`{"pageSize":${pageSize}}`)).json()).toMatchObject({ pageSize: 10 });
    }
    expectException(await askList('{"pageIndex":9007199254740992}'), 100104);
    expectException(await askList('{"pageIndex":0,"pageSize":"x"}'), 200001);
    expectException(await askList('{"pageIndex":0,"pageSize":1.5}'), 200001);
  });

  it("a body over the limit returns 100201 for publish, otherwise 200001", async () => {
    const body = `topic=rest&content=${"x".repeat(1_100_000)}`;
    await expectRefused({ method: "POST", path: "/rest/publish", headers: form, body }, 100201);
    await expectRefused({ method: "POST", path: "/rest/open", headers: form, body });
  });

  it("the content limit applies to the UTF-8 bytes", async () => {
    expect((await send(toPublish("ä".repeat(32_768)))).json()).toMatchObject({ status: "SUCCESS" });
    await expectRefused(toPublish(`${"ä".repeat(32_768)}x`), 100201);
  });
});

describe("INTERFACE.md, REST operations", () => {
  const subscribe = "/rest/subscribe?topic=rest&url=http%3A%2F%2F127.0.0.1%3A65535%2F";

  it("subscribe returns a JSON string; with Accept: text/plain the bare identifier", async () => {
    const asJson = await send({ method: "GET", path: subscribe });
    expect(asJson.text).toMatch(/^"[0-9a-f-]{36}"$/);
    const asText = await send({ method: "GET", path: subscribe, headers: { accept: "text/plain" } });
    expect(asText.headers["content-type"]).toMatch(/^text\/plain/);
    expect(asText.text).toMatch(/^[0-9a-f-]{36}$/);
    const both = await send({
      method: "GET",
      path: subscribe,
      headers: { accept: "application/json, text/plain, */*" },
    });
    expect(both.text).toMatch(/^"/);
  });

  it("a failure of subscribe is a BrokerException even for clients that accept text", async () => {
    const path = "/rest/subscribe?topic=none&url=http%3A%2F%2F127.0.0.1%3A65535%2F";
    expectException(await send({ method: "GET", path, headers: { accept: "text/plain" } }), 100101);
  });

  it("only parameters with the prefix svc- become extensions", async () => {
    const answer = await send({
      method: "GET",
      path: "/rest/publish?topic=rest&content=x&svc-format=json&Svc-b=1&format=2",
    });
    const { eventId } = answer.json() as { eventId: string };
    expect((await running().client.getEvent(eventId)).extensions).toEqual({ "svc-format": "json" });
  });

  it("the OpenAPI document has a path for each operation", async () => {
    const { paths } = (await send({ method: "GET", path: "/openapi.json" })).json() as {
      paths: Record<string, object>;
    };
    const operations = ["open", "close", "exist", "publish", "subscribe", "unSubscribe", "getEvent", "list", "state"];
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining([...operations.map((name) => `/rest/${name}`), "/admin/listSubscription"]),
    );
  });
});
