import { connect, type Socket } from "node:net";

/** Connections to one broker that send the given bytes and read nothing. */
export class Attackers implements Disposable {
  readonly #url: URL;
  readonly #sockets: Socket[] = [];

  constructor(url: string) {
    this.#url = new URL(url);
  }

  /** Opens connections, each of which sends `pieces`. Resolves when all is sent, or the broker has closed the connection. */
  async send(count: number, pieces: readonly (string | Uint8Array)[] = []): Promise<void> {
    const { hostname: host, port } = this.#url;
    const sockets = Array.from({ length: count }, () => connect({ host, port: Number(port) }));
    this.#sockets.push(...sockets);
    await Promise.all(sockets.map((socket) => sendAll(socket, pieces)));
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

async function sendAll(socket: Socket, pieces: readonly (string | Uint8Array)[]): Promise<void> {
  socket.pause().on("error", () => {}); // An attacker must expect a reset.
  // `once` of node:events would reject if the broker resets the connection.
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const connected = new Promise((resolve) => socket.once("connect", resolve));
  await Promise.race([connected, closed]);
  for (const piece of pieces) {
    const written = new Promise((resolve) => {
      socket.write(piece, resolve);
    });
    await Promise.race([written, closed]);
  }
}

/** Head of a POST whose body is `length` bytes long. */
export function toHead(path: string, { type, length }: { readonly type: string; readonly length: number }): string {
  return `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;
}

/** A batch that calls one method with the same parameters in every member. */
export function toBatch(count: number, method: string, params: object): string {
  return JSON.stringify(Array.from({ length: count }, (_, id) => ({ jsonrpc: "2.0", id, method, params })));
}
