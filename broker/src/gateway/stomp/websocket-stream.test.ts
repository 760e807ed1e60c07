import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { createByteStream } from "./websocket-stream.ts";

let server: WebSocketServer | undefined;
afterEach(() => server?.close());

it("reports an error for bytes that were not sent when the client broke the connection", async () => {
  server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // listens on TCP
  const client = new WebSocket(`ws://127.0.0.1:${port}`);
  const [[webSocket]] = (await Promise.all([once(server, "connection"), once(client, "open")])) as [
    [WebSocket],
    unknown,
  ];
  const stream = createByteStream(webSocket);
  stream.on("error", () => {}).resume();
  client.pause();
  const written = new Promise((resolve) => {
    stream.write(Buffer.alloc(32 * 1024 * 1024), resolve); // more than the system takes
  });
  client.terminate();
  expect(await written).toBeInstanceOf(Error);
});
