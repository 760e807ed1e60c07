import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";

export interface RawExchange {
  /** The pieces to write. Each is written in a later turn of the event loop than the piece before it, so that the broker mostly reads them one by one. */
  readonly pieces: readonly (string | Uint8Array)[];
  /** Half-closes after the last piece. */
  readonly isEnded?: boolean;
  /** Cuts the connection after the last piece instead of waiting for an answer. */
  readonly isCut?: boolean;
  readonly timeoutMs?: number;
}

/** Sends raw bytes to a broker, and returns everything received until the connection ended or `timeoutMs` passed. */
export async function exchangeRaw(
  url: string,
  { pieces, isEnded = false, isCut = false, timeoutMs = 15_000 }: RawExchange,
): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.on("error", () => {}); // A reset ends the exchange too; the bytes before it count.
  const closed = new Promise((resolve) => socket.once("close", resolve));
  const timer = setTimeout(() => socket.destroy(), timeoutMs);
  try {
    await once(socket, "connect");
    for (const piece of pieces) {
      await write(socket, piece);
      await nextTurn();
    }
    if (isCut) socket.destroy();
    else if (isEnded) socket.end();
    await closed;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
  return Buffer.concat(chunks).toString("latin1");
}

function write(socket: ReturnType<typeof connect>, piece: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.write(piece, () => resolve());
  });
}

/** A request with content-length and `connection: close`. */
export function toRequest(
  path: string,
  options: { readonly type: string; readonly body: string | Uint8Array; readonly method?: string },
): Buffer {
  const { type, method = "POST" } = options;
  const body = Buffer.from(options.body);
  const head = `${method} ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** Status and body of the first answer; undefined without an answer. */
export function parseAnswer(text: string): { readonly status: number; readonly body: string } | undefined {
  const match = /^HTTP\/1\.1 (\d{3})[^\r]*\r\n[\s\S]*?\r\n\r\n([\s\S]*)$/.exec(text);
  return match === null ? undefined : { status: Number(match[1]), body: match[2] ?? "" };
}
