import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A relay from a port to the server's socket. `freeze` makes what is connected then fall silent, without an end. */
export async function startRelay(path: string) {
  const sockets: Socket[] = [];
  const relay = createServer((inner) => {
    const outer = connect(path);
    sockets.push(inner, outer);
    for (const socket of [inner, outer]) socket.on("error", () => {});
    inner.pipe(outer).pipe(inner);
  });
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  const address = relay.address();
  if (address === null || typeof address === "string") throw new Error("the relay has no port");
  return {
    port: address.port,
    freeze: () => {
      for (const socket of sockets) socket.unpipe().pause();
    },
    close: () => {
      for (const socket of sockets) socket.destroy();
      relay.close();
    },
  };
}
