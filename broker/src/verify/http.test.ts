import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { answerTimeoutMs, askJson } from "./http.ts";
import { reasonOf } from "./unverifiable.ts";
import { collectGarbage } from "../lib/testing/collect-garbage.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

it.each<[string, RequestListener]>([
  ["sends nothing", () => {}],
  ["stops after the head", (_, response) => response.flushHeaders()],
  ["stops within the body", (_, response) => response.write('{"result":')],
])("ends in time if the server %s, even after a garbage collection", async (_, listener) => {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const url = typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "";
  const asked = once(server, "request");
  const closed = new Promise((resolve) => {
    server.once("connection", (socket) => socket.once("close", resolve));
  });
  const asking = expect(askJson({ url, body: {}, name: "the node" })).rejects.toThrow("the node does not answer");
  await asked;
  collectGarbage();
  vi.advanceTimersByTime(answerTimeoutMs);
  await asking;
  await closed; // The command could not end with an open connection.
  server.close();
});

it("says why it cannot connect", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  await new Promise((resolve) => server.close(resolve));
  const error: unknown = await askJson({ url: `http://127.0.0.1:${port}`, name: "the node" }).catch(
    (reason: unknown) => reason,
  );
  expect(reasonOf(error)).toBe(`the node does not answer: connect ECONNREFUSED 127.0.0.1:${port}`);
});

it("names the code of an error without a message", () => {
  const refused = Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" });
  const error = new Error("the node does not answer", { cause: new TypeError("fetch failed", { cause: refused }) });
  expect(reasonOf(error)).toBe("the node does not answer: ECONNREFUSED");
});
