import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { toNodeHandler } from "./handlers.ts";

it("toNodeHandler sends nothing if something else, such as a middleware with a time limit, has answered meanwhile", async () => {
  const rejections: unknown[] = [];
  const record = (error: unknown): void => void rejections.push(error);
  process.on("unhandledRejection", record);
  onTestFinished(() => void process.off("unhandledRejection", record));
  const handle = toNodeHandler({ secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", onEvent: () => {} });
  const server = createServer((request, response) => {
    handle(request, response);
    response.writeHead(503).end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect((await fetch(url, { method: "POST", body: "x" })).status).toBe(503);
  await new Promise((resolve) => setImmediate(resolve));
  expect(rejections).toEqual([]);
});
