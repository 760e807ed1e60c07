import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { resetConnection } from "./reset-connection.ts";

it.each([false, true])("resetConnection closes a connection (right after `end`: %s)", async (isEnding) => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const failed = new Promise<Error & { code?: string }>((resolve) => client.on("error", resolve));
  const [socket] = await accepted;
  if (isEnding) socket.end();
  const closed = once(socket, "close");
  resetConnection(socket);
  await closed;
  if (!isEnding) expect((await failed).code).toBe("ECONNRESET");
  client.destroy();
  server.close();
});
