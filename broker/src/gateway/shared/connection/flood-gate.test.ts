import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import type { Broker } from "../../../engine/broker.ts";
import { serve } from "../../testing/serve.ts";
import { whenClosed } from "../../testing/when-closed.ts";
import { closeFloods } from "./flood-gate.ts";

it("closes a refused connection before anything is read from it, and serves an admitted one", async () => {
  const asked: (string | undefined)[] = [];
  let isTaken = false;
  const mayConnect: Broker["mayConnect"] = (findAddress) => {
    asked.push(findAddress());
    return isTaken;
  };
  await using server = await serve({ mayConnect });
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  const closed = whenClosed(socket);
  socket.write("GET /rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await closed;
  expect([asked, socket.bytesRead, server.calls]).toEqual([["127.0.0.1"], 0, []]);
  isTaken = true;
  const answer = await fetch(`${server.url}/rest/exist?topic=a`);
  expect(await answer.json()).toBe(true);
});

it.each([
  { what: "with the internal handler of Node", findHandle: undefined, sockets: 1 },
  { what: "in a version of Node without that handler", findHandle: () => undefined, sockets: 2 },
])("resets a refused connection and serves an admitted one, $what; sockets created: $sockets", async (given) => {
  let isTaken = false;
  const sockets: Socket[] = [];
  const server = createServer((socket) => void socket.end("served"));
  closeFloods(server, { mayConnect: () => isTaken }, given.findHandle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  server.prependListener("connection", (socket) => void sockets.push(socket));
  const { port } = server.address() as { port: number }; // TCP.
  const [error] = (await once(connect(port, "127.0.0.1"), "error")) as [{ code: string }]; // As Node names it.
  isTaken = true;
  const [bytes] = (await once(connect(port, "127.0.0.1"), "data")) as [Buffer]; // As Node gives it.
  expect([error.code, String(bytes), sockets.length]).toEqual(["ECONNRESET", "served", given.sockets]);
  server.close();
});
