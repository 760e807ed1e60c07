import { once } from "node:events";
import { connect } from "node:net";

/** Sends the pieces over one connection, one by one, and returns all received bytes once the server has closed it. */
export async function sendRaw(url: string, pieces: readonly (string | Uint8Array)[]): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const received: Buffer[] = [];
  socket.on("data", (chunk) => received.push(chunk));
  const closed = once(socket, "close");
  await once(socket, "connect");
  for (const piece of pieces) await write(socket, piece);
  await closed;
  return Buffer.concat(received).toString("utf8");
}

function write(socket: ReturnType<typeof connect>, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    socket.write(piece, () => {
      // One turn of the event loop, so that the pieces leave one by one.
      setImmediate(resolve);
    });
  });
}

/** A POST as bytes, with `connection: close` unless `headers` has another value. */
export function toPost(path: string, body: Uint8Array, headers: Readonly<Record<string, string>>): Uint8Array {
  const lines = Object.entries({
    host: "localhost",
    connection: "close",
    "content-length": String(body.length),
    ...headers,
  });
  const head = `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** The body after the head of a raw response. */
export function bodyOf(response: string): string {
  return response.slice(response.indexOf("\r\n\r\n") + 4);
}
