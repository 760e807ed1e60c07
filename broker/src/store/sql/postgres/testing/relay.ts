import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/**
 * A relay from a port to the server's socket. `freeze` stops all traffic of the current connections without closing them. `silence` also
 * stops later connections, until `restore` closes the stopped ones.
 */
export async function startRelay(path: string) {
  const sockets: Socket[] = [];
  let isSilent = false;
  const relay = createServer((inner) => {
    const outer = connect(path);
    sockets.push(inner, outer);
    for (const socket of [inner, outer]) socket.on("error", () => {});
    if (!isSilent) inner.pipe(outer).pipe(inner);
  });
  relay.listen(0, "127.0.0.1");
  await once(relay, "listening");
  const address = relay.address();
  if (address === null || typeof address === "string") throw new Error("the relay has no port");
  const freeze = (): void => {
    for (const socket of sockets) socket.unpipe().pause();
  };
  const end = (): void => {
    for (const socket of sockets.splice(0)) socket.destroy();
  };
  return {
    port: address.port,
    freeze,
    silence: () => {
      isSilent = true;
      freeze();
    },
    restore: () => {
      isSilent = false;
      end();
    },
    close: () => {
      end();
      relay.close();
    },
  };
}
