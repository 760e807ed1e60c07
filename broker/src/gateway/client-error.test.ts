import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Server } from "node:http";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { TestEngine } from "../engine/testing/test-engine.ts";
import { bodyOf, sendRaw } from "./testing/raw-http.ts";
import { serve } from "./testing/serve.ts";

function giveUp(message: unknown): void {
  const { server, socket } = message as { server: Server; socket: Socket }; // As Node documents the channel.
  const error = Object.assign(new Error("request timeout"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
  setImmediate(() => server.emit("clientError", error, socket));
}

/** Sends the bytes. Once the server has read them, it gives the request up, as Node does after 30 s. */
async function sendStalled(url: string, bytes: string): Promise<string> {
  subscribe("http.server.request.start", giveUp);
  try {
    return await sendRaw(url, [bytes]);
  } finally {
    unsubscribe("http.server.request.start", giveUp);
  }
}

it.each([
  ["a REST call", "POST /rest/exist", "", 200],
  ["a REST call by a method that REST lacks", "PUT /rest/exist", "ce-specversion: 1.0\r\n", 200],
  ["a request to /rest itself", "PUT /rest", "", 200],
  ["a CloudEvent", "POST /rest/publish", "ce-specversion: 1.0\r\n", 408],
  ["a structured CloudEvent", "POST /rest/publish", "content-type: application/cloudevents+json\r\n", 408],
  ["a JSON-RPC call", "POST /jsonrpc", "content-type: application/json\r\n", 408],
])("%s whose body stalls gets 200300 and may be repeated", async (_what, line, ...[headers, status]) => {
  await using server = await serve();
  const head = `${line} HTTP/1.1\r\nhost: localhost\r\n${headers}content-length: 100\r\n\r\n`;
  const response = await sendStalled(server.url, `${head}{"topic":`);
  expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} .*\r\nstele-error-retry: true\r\n`, "s"));
  expect(JSON.parse(bodyOf(response))).toMatchObject({ code: 200300, message: expect.stringMatching(/in time$/) });
  expect(server.calls).toEqual([]);
});

it.each(["PUT", "DELETE"])("a %s whose body is malformed or stalls is answered", async (method) => {
  const engine = await TestEngine.start();
  await using server = await serve({}, { operator: engine.running.operator });
  const head = `${method} /admin/v1/roles/a HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`;
  const malformed = await sendRaw(server.url, [`${head}transfer-encoding: chunked\r\n\r\n`, "zz\r\n"]);
  expect(malformed).toMatch(/^HTTP\/1.1 400 .*\r\nstele-error-retry: false\r\n/s);
  const stalled = await sendStalled(server.url, `${head}content-length: 100\r\n\r\n{`);
  expect(stalled).toMatch(/^HTTP\/1.1 408 .*\r\nstele-error-retry: true\r\n/s);
  await engine.stop();
});

it.each([
  ["a CloudEvent behind an empty line", "\r\nPOST /rest/publish", 431],
  ["a method that REST lacks, behind an empty line", "\r\nPUT /rest/publish", 200],
  ["a request to /rest itself", "PUT /rest", 200],
  ["a request to /rest itself, with a query", "GET /rest?topic=a", 200],
  ["a path that only begins like REST", "GET /restful", 431],
])("%s with headers over the limit gets the status that its other errors have", async (_what, line, status) => {
  await using server = await serve();
  const head = `${line} HTTP/1.1\r\nce-specversion: 1.0\r\n`;
  const response = await sendRaw(server.url, [`${head}x: ${"x".repeat(40_000)}\r\n\r\n`]);
  expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(JSON.parse(bodyOf(response))).toMatchObject({ code: 200001 });
});

it("empty lines before a malformed request cost time in proportion to their length", async () => {
  await using server = await serve();
  const before = process.cpuUsage();
  for (let count = 0; count < 10; count += 1)
    expect(await sendRaw(server.url, [`${"\n".repeat(32_000)}\u0001`])).toMatch(/^HTTP\/1.1 400 /);
  const { user, system } = process.cpuUsage(before);
  expect(user + system).toBeLessThan(1_000_000); // Microseconds; a time that grows by the square would be four times as long.
});
