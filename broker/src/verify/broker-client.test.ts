import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream";
import { expect, it, onTestFinished } from "vitest";
import { BrokerClient } from "./broker-client.ts";
import { AnswerTooLong, Unverifiable } from "./unverifiable.ts";

/** The address of a server that answers every request like this. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // The address of a TCP server.
}

function* pieces(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(1_048_576);
}

it("says that an answer broke off, not that the server does not answer", async () => {
  const broker = await serve((_request, response) => {
    response.writeHead(200, { "content-length": 1_000 }).write("{", () => response.destroy());
  });
  const asking = new BrokerClient({ broker, key: undefined, group: undefined }).getProof("00000000-1-1");
  await expect(asking).rejects.toThrow(new Unverifiable(`the answer of ${broker} broke off (UND_ERR_SOCKET)`));
});

it("stops reading an endless answer at the maximum size of an answer with one event, and does not ask again", async () => {
  let requests = 0;
  const broker = await serve((_request, response) => {
    requests += 1;
    pipeline(pieces, response, () => {});
  });
  const asking = new BrokerClient({ broker, key: undefined, group: undefined }).findEvent("00000000-1-1");
  await expect(asking).rejects.toThrow(new AnswerTooLong(`the broker at ${broker} returned more than 25165824 bytes`));
  expect(requests).toBe(1);
});
