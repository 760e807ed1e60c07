import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

/** A request as it arrived. */
export interface WebRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Answers a request, or leaves it unanswered. */
export type Answer = (request: WebRequest, response: ServerResponse) => void;

/** A server on loopback that does not know callbacks. */
export interface WebServer extends AsyncDisposable {
  readonly url: string;
  /** Complete requests. */
  readonly requests: readonly WebRequest[];
  /** Sum of the lengths of the request bodies. */
  readonly bodyBytes: number;
  readonly openConnections: number;
  setAnswer(answer: Answer): void;
}

export async function startWebServer(answer: Answer, port = 0): Promise<WebServer> {
  const state = { answer, bodyBytes: 0 };
  const requests: WebRequest[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((message, response) => {
    const take = (request: WebRequest): void => {
      requests.push(request);
      state.bodyBytes += request.body.length;
      state.answer(request, response);
    };
    readRequest(message).then(take, () => {}); // An aborted request does not count.
  });
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, // It listens on TCP.
    requests,
    get bodyBytes() {
      return state.bodyBytes;
    },
    get openConnections() {
      return sockets.size;
    },
    setAnswer: (next) => {
      state.answer = next;
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Answers with a status and no body. */
export function answer(status: number, headers: Readonly<Record<string, string>> = {}): Answer {
  return (_request, response) => void response.writeHead(status, headers).end();
}

/** Never answers. */
export const neverAnswer: Answer = () => {};

async function readRequest(message: IncomingMessage): Promise<WebRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer); // No encoding is set, so chunks are buffers.
  return { method: message.method ?? "", headers: message.headers, body: Buffer.concat(chunks).toString() };
}
