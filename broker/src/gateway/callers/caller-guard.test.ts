import { expect, test } from "vitest";
import { bodyOf, sendRaw } from "../testing/raw-http.ts";
import { serve } from "../testing/serve.ts";

const origin = "https://console.example.org";

async function ask(url: string, headers: Readonly<Record<string, string>>, line = "GET /rest/exist?topic=a HTTP/1.1") {
  const lines = Object.entries({ host: "localhost", connection: "close", ...headers });
  const text = await sendRaw(url, [`${line}\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`]);
  return {
    status: Number(text.slice(9, 12)),
    head: text.slice(0, text.indexOf("\r\n\r\n")).toLowerCase(),
    body: bodyOf(text),
  };
}

test.each([
  [
    "host",
    { host: "evil.example" },
    'the host "evil.example" is not one of this broker\'s; STELE_ALLOWED_HOSTS allows more names',
  ],
  [
    "site",
    { "sec-fetch-site": "cross-site" },
    "a web page of another site sent the request; STELE_ALLOWED_ORIGINS allows more origins",
  ],
  [
    "site and origin",
    { "sec-fetch-site": "same-site", origin },
    `a web page of "${origin}" sent the request; STELE_ALLOWED_ORIGINS allows more origins`,
  ],
  [
    "empty site",
    { "sec-fetch-site": "" },
    "a web page of another site sent the request; STELE_ALLOWED_ORIGINS allows more origins",
  ],
  ["origin", { origin }, `web pages of "${origin}" may not call; STELE_ALLOWED_ORIGINS allows more origins`],
  ["null origin", { origin: "null" }, 'web pages of "null" may not call; STELE_ALLOWED_ORIGINS allows more origins'],
  [
    "null origin without a site",
    { origin: "null", "sec-fetch-site": "none" },
    'web pages of "null" may not call; STELE_ALLOWED_ORIGINS allows more origins',
  ],
  ["callback of a broker", { "user-agent": "stele/1.2.3" }, "callbacks of a broker may not call a broker"],
])("refuses a foreign %s with the reason, without a call to the broker", async (_name, headers, details) => {
  await using server = await serve({ exist: async () => true });
  const { status, head, body } = await ask(server.url, headers);
  expect({ status, body: JSON.parse(body) }).toEqual({
    status: 403,
    body: { code: 100703, message: `this origin or host may not call: ${details}` },
  });
  expect(head).toContain("\r\nconnection: close");
  expect(head).toContain("\r\nstele-error-retry: false");
  expect(server.calls).toEqual([]);
  expect(server.errors).toEqual([]);
});

test.each([
  {},
  { "user-agent": "steleless/1" },
  { origin: "http://localhost" },
  { "sec-fetch-site": "none" },
  { "sec-fetch-site": "same-origin", origin: "https://localhost" },
])("serves a request with the headers %o", async (headers) => {
  await using server = await serve({ exist: async () => true });
  expect(await ask(server.url, headers)).toMatchObject({ status: 200, body: "true" });
});

test.each(["GET /rest/exist?topic=a", "POST /jsonrpc"])("refuses %s over HTTP/1.1 without a Host", async (line) => {
  await using server = await serve({ exist: async () => true });
  const text = await sendRaw(server.url, [`${line} HTTP/1.1\r\n\r\n`]);
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(JSON.parse(bodyOf(text))).toMatchObject({
    code: 200001,
    message: expect.stringContaining("the request has no Host header"),
  });
});

test("serves HTTP/1.0 without a Host", async () => {
  await using server = await serve({ exist: async () => true });
  expect(bodyOf(await sendRaw(server.url, ["GET /rest/exist?topic=a HTTP/1.0\r\n\r\n"]))).toBe("true");
});

test("names each request header that the answer depends on in Vary, once each", async () => {
  await using server = await serve({ subscribe: async () => "id" as never }, { allowedOrigins: [origin] }); // Only passed on.
  const line = "GET /rest/subscribe?topic=a&url=http://h/ HTTP/1.1";
  expect((await ask(server.url, { origin }, line)).head).toContain("\r\nvary: origin, accept\r\n");
});

test("answers preflights of allowed origins only", async () => {
  await using server = await serve({}, { allowedOrigins: [origin] });
  const line = "OPTIONS /jsonrpc HTTP/1.1";
  const asked = { "access-control-request-method": "POST" };
  expect((await ask(server.url, { origin, ...asked }, line)).status).toBe(204);
  expect((await ask(server.url, { origin }, line)).status).toBe(405);
  expect((await ask(server.url, asked, line)).status).toBe(405);
  expect((await ask(server.url, { origin: "https://other.example", ...asked }, line)).status).toBe(403);
  expect((await ask(server.url, { origin, ...asked }, "POST /jsonrpc HTTP/1.1")).status).toBe(200);
});

test("grants a preflight no headers and no private network access that it did not request, and no credentials", async () => {
  await using server = await serve({}, { allowedOrigins: ["*"] });
  const headers = { origin, "access-control-request-method": "GET" };
  const { head } = await ask(server.url, headers, "OPTIONS /rest/open HTTP/1.1");
  expect(head).toContain(`\r\naccess-control-allow-origin: ${origin}\r\n`);
  expect(head).not.toMatch(/allow-headers|private-network|credentials/);
});

test("lets a page of an allowed origin read failures too", async () => {
  await using server = await serve({}, { allowedOrigins: [origin] });
  for (const line of ["GET /nothing HTTP/1.1", "GET /rest/open?topic=%zz HTTP/1.1", "GET /%zz HTTP/1.1"])
    expect((await ask(server.url, { origin }, line)).head).toContain(`\r\naccess-control-allow-origin: ${origin}\r\n`);
});

test.each([
  "/admin/listSubscription",
  "/admin/v1/subscriptions",
  "/%61dmin/v1/groups",
  "/admin/v1/nothing",
  "/metrics",
])("no page of another origin may call %s, whatever origins are allowed", async (path) => {
  await using server = await serve({}, { allowedOrigins: ["*"], operator: {} as never }); // Never called.
  for (const headers of [{ origin }, { "sec-fetch-site": "cross-site" }]) {
    const { status, head, body } = await ask(server.url, headers, `GET ${path} HTTP/1.1`);
    expect({ status, body }).toMatchObject({ status: 403, body: expect.stringContaining("no setting allows them") });
    expect(head).not.toContain("access-control");
  }
  const asked = { origin, "access-control-request-method": "GET" };
  const preflight = await ask(server.url, asked, `OPTIONS ${path.replace("%61", "a")} HTTP/1.1`);
  expect(preflight.status).toBe(403);
});

test("no page of another origin may call the operators' listener", async () => {
  await using server = await serve({}, { allowedOrigins: ["*"], audience: "operators" });
  expect((await ask(server.url, { origin }, "GET /health/live HTTP/1.1")).status).toBe(403);
  expect((await ask(server.url, { origin: "http://localhost" }, "GET /health/live HTTP/1.1")).status).toBe(200);
});

test("protects operators' paths below the base path, but no other paths that begin alike", async () => {
  await using server = await serve({}, { allowedOrigins: ["*"], basePath: "/one" });
  const statusOf = async (path: string): Promise<number> =>
    (await ask(server.url, { origin }, `GET ${path} HTTP/1.1`)).status;
  expect(await statusOf("/one/metrics")).toBe(403);
  expect(await statusOf("/one/administration")).toBe(404);
  expect(await statusOf("/admin/listSubscription")).toBe(404);
});
