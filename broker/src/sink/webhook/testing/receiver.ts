import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";

/** A request as it arrived. */
export interface ReceivedRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A real local server; closing it ends all its connections. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Complete requests; none of a TCP receiver. */
  readonly requests: ReceivedRequest[];
  /** Connections that the server has accepted so far, closed ones included. */
  connectionCount(): number;
}

export type Answerer = (response: ServerResponse, request: ReceivedRequest) => void;

/** Starts an HTTP server that answers each request once it is complete. */
export async function startReceiver(answer: Answerer): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const server = createServer((message, response) => {
    void readRequest(message).then((request) => {
      requests.push(request);
      return answer(response, request);
    });
  });
  return await listen(server, requests);
}

/** Starts a TCP server whose connections `talk` handles. */
export async function startTcpReceiver(talk: (socket: Socket) => void): Promise<Receiver> {
  return await listen(createTcpServer(talk), []);
}

async function listen(server: Server, requests: ReceivedRequest[]): Promise<Receiver> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on("connection", (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  const dispose = async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  };
  return {
    url: `http://127.0.0.1:${port}/hook`,
    port,
    requests,
    connectionCount: () => connections,
    [Symbol.asyncDispose]: dispose,
  };
}

async function readRequest(message: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer); // No encoding is set, so chunks are buffers.
  const { method, url: path, headers } = message;
  return { method, path, headers, body: Buffer.concat(chunks).toString("utf8") };
}
