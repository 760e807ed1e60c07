import { BrokerError, type ErrorName, errorCatalogue } from "@stele/wire";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bodyOf, sendRaw, toPost } from "../testing/raw-http.ts";
import { type Served, serve, testBodyBytesMax } from "../testing/serve.ts";

const json = { "content-type": "application/json" };
const form = { "content-type": "application/x-www-form-urlencoded" };
const text = { "content-type": "text/plain" };

interface Failure {
  readonly what: string;
  readonly path: string;
  readonly init?: RequestInit;
  readonly code: number;
  readonly message?: RegExp;
}

const post = (headers: Record<string, string>, body: string | Uint8Array<ArrayBuffer>): RequestInit => ({
  method: "POST",
  headers,
  body,
});
const overLimit = "x".repeat(testBodyBytesMax + 1);

const refusals: readonly Failure[] = [
  { what: "topic missing", path: "/rest/open", code: 200001, message: /"topic" is missing/ },
  { what: "content missing", path: "/rest/publish?topic=a", code: 200001, message: /"content" is missing/ },
  { what: "url missing", path: "/rest/subscribe?topic=a", code: 200001, message: /"url" is missing/ },
  { what: "subscriptionId missing", path: "/rest/unSubscribe", code: 200001, message: /"subscriptionId" is missing/ },
  { what: "eventId missing", path: "/rest/getEvent", code: 200001, message: /"eventId" is missing/ },
  { what: "pageIndex no integer", path: "/rest/list?pageIndex=x", code: 100104, message: /"x"/ },
  { what: "pageIndex a fraction", path: "/rest/list?pageIndex=1.5", code: 100104 },
  { what: "pageIndex blank", path: "/rest/list?pageIndex=", code: 100104 },
  { what: "pageSize no integer", path: "/rest/list?pageSize=ten", code: 200001, message: /"pageSize"/ },
  { what: "repeated", path: "/rest/open?topic=a&topic=a", code: 200001, message: /"topic" is given more than once/ },
  {
    what: "in query and body",
    path: "/rest/open?topic=a",
    init: post(form, "topic=a"),
    code: 200001,
    message: /more than once/,
  },
  {
    what: "malformed escape",
    path: "/rest/open?topic=%zz",
    code: 200001,
    message: /value of "topic" has a malformed escape/,
  },
  { what: "escape cut short", path: "/rest/open?topic=a%2", code: 200001, message: /malformed escape/ },
  {
    what: "malformed escape in a name",
    path: "/rest/open?%zz=a",
    code: 200001,
    message: /: the name of a parameter has/,
  },
  {
    what: "malformed escape in a secret, which is not shown",
    path: "/rest/subscribe",
    init: post(form, "topic=a&url=http://a/&secret=whsec_%zz"),
    code: 200001,
    message: /^(?!.*whsec).*the value of "secret" has a malformed escape/,
  },
  { what: "escapes that are not UTF-8", path: "/rest/open?topic=%ff%fe", code: 200001, message: /UTF-8/ },
  { what: "overlong UTF-8", path: "/rest/publish?topic=a&content=%c0%af", code: 200001, message: /UTF-8/ },
  { what: "surrogates in UTF-8", path: "/rest/publish?topic=a&content=%ed%a0%80", code: 200001, message: /UTF-8/ },
  {
    what: "form not UTF-8",
    path: "/rest/open",
    init: post(form, Buffer.from([0x74, 0x3d, 0xff])),
    code: 200001,
    message: /UTF-8/,
  },
  { what: "malformed JSON", path: "/rest/open", init: post(json, '{"topic":'), code: 200001, message: /JSON/ },
  { what: "JSON array", path: "/rest/open", init: post(json, "[]"), code: 200001, message: /not an object/ },
  { what: "JSON null", path: "/rest/open", init: post(json, "null"), code: 200001, message: /not an object/ },
  {
    what: "JSON number for text",
    path: "/rest/open",
    init: post(json, '{"topic":5}'),
    code: 200001,
    message: /"topic" is not a string/,
  },
  {
    what: "JSON object for an integer",
    path: "/rest/list",
    init: post(json, '{"pageIndex":{}}'),
    code: 200001,
    message: /"pageIndex" is not an integer/,
  },
  {
    what: "JSON with half a surrogate pair",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","content":"\\ud800"}'),
    code: 200001,
    message: /surrogate/,
  },
  {
    what: "JSON with half a surrogate pair in the name of an extension",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","content":"c","svc-\\ud800":"1"}'),
    code: 200001,
    message: /"extensions" holds half of a surrogate pair/,
  },
  {
    what: "JSON with half a surrogate pair in a name of its extensions",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","content":"c","extensions":{"svc-\\ud800":"1","svc-\\udfff":"2"}}'),
    code: 200001,
    message: /"extensions" holds half of a surrogate pair/,
  },
  {
    what: "extension that is not a string",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","content":"c","svc-a":1}'),
    code: 200001,
    message: /"svc-a" is not a string/,
  },
  {
    what: "JSON member that publish does not have",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","content":"c","extention":{"svc-a":"1"}}'),
    code: 200001,
    message: /"extention" is not a member.*topic, groupId, content, extensions, and names that begin with svc-/,
  },
  {
    what: "extensions for an operation without any",
    path: "/rest/open",
    init: post(json, '{"topic":"a","extensions":{"svc-a":"1"}}'),
    code: 200001,
    message: /"extensions" is not a member/,
  },
  {
    what: "extensions that are not an object",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","content":"c","extensions":["svc-a"]}'),
    code: 200001,
    message: /"extensions" is not an object/,
  },
  {
    what: "extension in an object without the prefix",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","extensions":{"content":"c"}}'),
    code: 100206,
    message: /"content" does not begin with svc-$/,
  },
  {
    what: "extension in an object that is not a string",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","content":"c","extensions":{"svc-a":{}}}'),
    code: 200001,
    message: /"svc-a" is not a string/,
  },
  {
    what: "extension given twice",
    path: "/rest/publish",
    init: post(json, '{"topic":"a","content":"c","svc-a":"1","extensions":{"svc-a":"1"}}'),
    code: 200001,
    message: /"svc-a" is given more than once/,
  },
  { what: "wrong content type", path: "/rest/open", init: post(text, "topic=a"), code: 200001, message: /text\/plain/ },
  {
    what: "invalid Content-Type",
    path: "/rest/open",
    init: post({ "content-type": "json" }, "{}"),
    code: 200001,
    message: /content-type header is not a media type/,
  },
  {
    what: "compressed body",
    path: "/rest/open",
    init: post({ ...json, "content-encoding": "gzip" }, '{"topic":"a"}'),
    code: 200001,
    message: /"gzip"/,
  },
  {
    what: "other character set",
    path: "/rest/open",
    init: post({ "content-type": "application/json; charset=latin1" }, "{}"),
    code: 200001,
    message: /character set/,
  },
  {
    what: "body over the limit",
    path: "/rest/open",
    init: post(form, overLimit),
    code: 200001,
    message: /over 200000 bytes/,
  },
  { what: "content over the limit", path: "/rest/publish", init: post(form, overLimit), code: 100201 },
  {
    what: "unknown operation",
    path: "/rest/opens?topic=a",
    code: 200001,
    message: /GET "\/rest\/opens"; the operations are \/rest\/open, /,
  },
  { what: "no operation", path: "/rest", code: 200001 },
  { what: "below an operation", path: "/rest/open/x", code: 200001 },
  { what: "malformed path", path: "/rest/%zz", code: 200001 },
  {
    what: "PUT",
    path: "/rest/open?topic=a",
    init: { method: "PUT" },
    code: 200001,
    message: /PUT .*; use GET or POST$/,
  },
  { what: "DELETE", path: "/rest/open?topic=a", init: { method: "DELETE" }, code: 200001 },
  { what: "OPTIONS", path: "/rest/open?topic=a", init: { method: "OPTIONS" }, code: 200001 },
  {
    what: "GET query over 1024 bytes",
    path: `/rest/publish?topic=a&content=${"x".repeat(1025 - "topic=a&content=".length)}`,
    code: 200001,
    message: /1025 bytes.*use POST/,
  },
];

describe("a REST failure is HTTP 200 with a code", () => {
  let failure: BrokerError;
  let refusing: Served;
  /** A server whose broker fails each `open` with `failure`. */
  let failing: Served;
  beforeAll(async () => {
    refusing = await serve();
    failing = await serve({ open: () => Promise.reject(failure) });
  });
  afterAll(() => Promise.all([refusing.close(), failing.close()]));

  it.each(refusals)("$what: $code, and the broker is not called", async ({ path, init, code, message }) => {
    const [callsBefore, errorsBefore] = [refusing.calls.length, refusing.errors.length];
    const response = await fetch(`${refusing.url}${path}`, init);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(response.headers.get("stele-error-retry")).toBe("false");
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
    expect(await response.json()).toEqual({ code, message: expect.stringMatching(message ?? /./) });
    expect(refusing.calls.slice(callsBefore)).toEqual([]);
    expect(refusing.errors.slice(errorsBefore)).toEqual([]);
  });

  it.each(Object.entries(errorCatalogue))(
    "returns the broker's error %s, and logs only a defect or a failed transaction",
    async (name, definition) => {
      failure = new BrokerError(name as ErrorName); // A key of the catalogue.
      const [errorsBefore, warningsBefore] = [failing.errors.length, failing.warnings.length];
      const response = await fetch(`${failing.url}/rest/open?topic=a`);
      expect(response.headers.get("stele-error-retry")).toBe(String(definition.retry));
      expect(await response.json()).toEqual({ code: definition.code, message: definition.message });
      expect(failing.errors.slice(errorsBefore)).toHaveLength(name === "unknown" ? 1 : 0);
      const { code, message: reason } = definition;
      const warning = { message: "request failed", fields: { operation: "open", code, reason } };
      expect(failing.warnings.slice(warningsBefore)).toEqual(name === "transactionFailed" ? [warning] : []);
    },
  );

  it("returns the hints of an error after its message", async () => {
    const invalid = new BrokerError("urlInvalid", { details: "it cannot be parsed", hints: ["Give an absolute URL."] });
    await using hinting = await serve({ subscribe: () => Promise.reject(invalid) });
    const response = await fetch(`${hinting.url}/rest/subscribe?topic=a&url=b`);
    const message = "url is malformed or not allowed: it cannot be parsed. Give an absolute URL.";
    expect(await response.json()).toEqual({ code: 100501, message });
  });

  it("logs an unexpected error once, and hides its text from the client", async () => {
    const defect = new TypeError("secret at /etc/passwd");
    await using broken = await serve({ open: () => Promise.reject(defect) });
    const response = await fetch(`${broken.url}/rest/open?topic=a`);
    expect(await response.json()).toEqual({ code: 200000, message: "unknown error" });
    expect(broken.errors).toEqual([{ message: "request failed", fields: { operation: "open", error: defect } }]);
  });

  it("HEAD runs no operation", async () => {
    const callsBefore = refusing.calls.length;
    expect((await fetch(`${refusing.url}/rest/open?topic=a`, { method: "HEAD" })).status).toBe(200);
    expect(refusing.calls).toHaveLength(callsBefore);
  });
});

describe("limits of a request", () => {
  it("accepts a GET query of 1024 bytes", async () => {
    await using server = await serve();
    const content = "x".repeat(1024 - "topic=a&content=".length);
    await fetch(`${server.url}/rest/publish?topic=a&content=${content}`);
    expect(server.calls[0]?.call).toMatchObject({ content: Buffer.from(content) });
  });

  it("accepts a POST query of more than 1024 bytes", async () => {
    await using server = await serve();
    const content = "x".repeat(5000);
    await fetch(`${server.url}/rest/publish?topic=a&content=${content}`, { method: "POST" });
    expect(server.calls[0]?.call).toMatchObject({ content: Buffer.from(content) });
  });

  it("a request line over the limit is answered with a hint", async () => {
    await using server = await serve();
    const response = await sendRaw(server.url, [`GET /rest/open?topic=${"x".repeat(40_000)} HTTP/1.1\r\n`]);
    expect(response).toMatch(/^HTTP\/1.1 200 /);
    expect(JSON.parse(bodyOf(response))).toMatchObject({
      code: 200001,
      message: expect.stringMatching(/body of a POST/),
    });
  });

  it("headers over the limit of a PUT under /rest get 200 and the code 200001, even with a header of CloudEvents", async () => {
    await using server = await serve();
    const head = "PUT /rest/exist HTTP/1.1\r\nce-specversion: 1.0\r\n";
    const response = await sendRaw(server.url, [`${head}x: ${"x".repeat(40_000)}\r\n\r\n`]);
    expect(response).toMatch(/^HTTP\/1.1 200 /);
    expect(JSON.parse(bodyOf(response))).toMatchObject({ code: 200001 });
  });

  it("headers over the limit get 431 outside /rest", async () => {
    await using server = await serve();
    const response = await sendRaw(server.url, [`GET /metrics HTTP/1.1\r\nx: ${"x".repeat(40_000)}\r\n\r\n`]);
    expect(response).toMatch(/^HTTP\/1.1 431 /);
  });

  it.each([
    ["/rest/exist", 200],
    ["/health/live", 431],
  ])("256 headers of %s are served, 257 are refused with status %d", async (path, status) => {
    await using server = await serve();
    const send = (count: number) => {
      const more = Array.from({ length: count - 2 }, (_, index) => `x-${index}: y\r\n`).join("");
      return sendRaw(server.url, [
        `GET ${path}?topic=a HTTP/1.1\r\nhost: localhost\r\n${more}connection: close\r\n\r\n`,
      ]);
    };
    expect(await send(256)).toMatch(/^HTTP\/1.1 200 /);
    expect(await send(256)).not.toContain("headers");
    for (const count of [257, 288, 1001, 2000]) {
      const answer = await send(count);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
      expect(answer).toContain("more than 256 headers");
    }
  });

  it("an unescaped character in the request line is answered with 200001 and the reason", async () => {
    await using server = await serve();
    const response = await sendRaw(server.url, ["GET /rest/open?topic=ä HTTP/1.1\r\nhost: localhost\r\n\r\n"]);
    expect(response).toMatch(/^HTTP\/1.1 200 /);
    expect(JSON.parse(bodyOf(response))).toMatchObject({ code: 200001, message: expect.stringMatching(/not escaped/) });
  });

  it("a request that is not HTTP gets 400", async () => {
    await using server = await serve();
    const response = await sendRaw(server.url, ["NONSENSE\r\n\r\n"]);
    expect(response).toMatch(/^HTTP\/1.1 400 /);
    expect(JSON.parse(bodyOf(response))).toMatchObject({ code: 200001 });
  });

  const chunked = "host: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n";

  it.each([
    ["a REST call", "/rest/exist", "", 200],
    ["a CloudEvent", "/rest/publish", "ce-specversion: 1.0\r\n", 400],
    ["a JSON-RPC call", "/jsonrpc", "", 400],
  ])("a malformed chunk in the body of %s is answered", async (_what, path, ...[headers, status]) => {
    await using server = await serve();
    const head = `POST ${path} HTTP/1.1\r\n${chunked}${headers}\r\n`;
    const response = await sendRaw(server.url, [head, '9\r\n{"topic":\r\n', "zz\r\n"]);
    expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} .*\r\nstele-error-retry: false\r\n`, "s"));
    expect(JSON.parse(bodyOf(response))).toMatchObject({ code: 200001, message: expect.stringMatching(/valid HTTP/) });
    expect(server.calls).toEqual([]);
  });

  it("a GET with a malformed body runs, and gets no error about the body", async () => {
    const opened: string[] = [];
    await using server = await serve({
      open: (_, { topic }) => {
        opened.push(topic);
        return new Promise(() => {});
      },
    });
    const head = `GET /rest/open?topic=a HTTP/1.1\r\n${chunked}\r\n`;
    expect(await sendRaw(server.url, [head, "zz\r\n"])).toBe("");
    expect(opened).toEqual(["a"]);
  });

  it("the error of a malformed request is not sent as the answer to an earlier request", async () => {
    await using server = await serve();
    const first = toPost("/rest/exist", Buffer.from("topic=a"), { ...form, connection: "keep-alive" });
    const second = `POST /rest/exist HTTP/1.1\r\n${chunked}\r\nzz\r\n`;
    expect(await sendRaw(server.url, [Buffer.concat([first, Buffer.from(second)])])).not.toContain("valid HTTP");
  });

  it("a connection stays usable after a body over the limit", async () => {
    await using server = await serve();
    const long = toPost("/rest/open", Buffer.alloc(testBodyBytesMax + 1, 120), { ...form, connection: "keep-alive" });
    const next = toPost("/rest/exist", Buffer.from("topic=a"), form);
    const response = await sendRaw(server.url, [long, next]);
    expect(response.match(/HTTP\/1.1 200/g)).toHaveLength(2);
    expect(response.endsWith("\r\n\r\ntrue")).toBe(true);
  });
});
