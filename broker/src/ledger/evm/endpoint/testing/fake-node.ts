import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

interface Call {
  readonly method: string;
  readonly id: number;
}
type Answer = (call: Call) => unknown;
type Exchange = (request: IncomingMessage, response: ServerResponse) => void;

const batchRefusal = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "no batches" } };

/** The answers of a chain node that serves a small chain. */
export class FakeChain {
  chainId = 1;
  genesis = `0x${"00".repeat(32)}`;
  head = 100;

  answer(method: string): unknown {
    if (method === "eth_chainId") return `0x${this.chainId.toString(16)}`;
    if (method === "eth_getBlockByNumber") return this.block();
    if (method === "eth_subscribe") return "0xabc";
    if (method === "eth_getLogs") return [];
    return method === "eth_blockNumber" ? `0x${this.head.toString(16)}` : method;
  }

  block() {
    const hash = this.genesis;
    return { number: `0x${this.head.toString(16)}`, hash, parentHash: hash, timestamp: "0x1", gasLimit: "0x1" };
  }
}

/** An endpoint over HTTP and WebSocket whose answers the test sets. */
export class FakeNode implements AsyncDisposable {
  readonly chain = new FakeChain();
  readonly methods: string[] = [];
  readonly requests: IncomingMessage[] = [];
  /** Replaces the answer to a call; over HTTP, it may be a promise. */
  answer: Answer | undefined;
  /** Replaces the handling of HTTP requests. */
  exchange: Exchange | undefined;
  takesBatches = true;
  /** Whether it closes the connection after each answer over HTTP, and says so. */
  isClosing = false;
  /** If false, WebSocket handshakes are refused with HTTP 429. */
  acceptsWebSockets = true;
  readonly sockets = new Set<WebSocket>();
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #tcp = new Set<Socket>();
  readonly #webSockets = new WebSocketServer({ noServer: true });

  static async start(port = 0): Promise<FakeNode> {
    const node = new FakeNode();
    await node.listen(port);
    return node;
  }

  async listen(port: number): Promise<void> {
    this.#server.on("connection", (socket: Socket) => {
      this.#tcp.add(socket);
      socket.on("close", () => this.#tcp.delete(socket));
    });
    this.#server.on("upgrade", (request, socket, head) => {
      this.requests.push(request);
      if (!this.acceptsWebSockets) socket.end("HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\n\r\n");
      else this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => this.#accept(webSocket));
    });
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port; // It listens on TCP.
  }

  url(scheme: "http" | "ws" = "http", rest = ""): string {
    return `${scheme}://127.0.0.1:${this.port}${rest}`;
  }

  count(method: string): number {
    return this.methods.filter((name) => name === method).length;
  }

  notifyHead(subscription = "0xabc"): void {
    const params = { subscription, result: this.chain.block() };
    for (const socket of this.sockets) {
      socket.send(JSON.stringify({ jsonrpc: "2.0", method: "eth_subscription", params }));
    }
  }

  /** Closes every connection. */
  drop(): void {
    for (const socket of this.#tcp) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.drop();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests.push(request);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer); // A server's request gives bytes.
    if (this.exchange !== undefined) return this.exchange(request, response);
    response.setHeader("content-type", "application/json");
    if (this.isClosing) response.setHeader("connection", "close");
    response.end(JSON.stringify(await this.#toAnswer(Buffer.concat(chunks).toString())));
  }

  #accept(webSocket: WebSocket): void {
    this.sockets.add(webSocket);
    webSocket.on("close", () => this.sockets.delete(webSocket));
    webSocket.on("message", (data: Buffer) => {
      const answer = this.#toAnswer(data.toString());
      if (answer !== undefined) webSocket.send(typeof answer === "string" ? answer : JSON.stringify(answer));
    });
  }

  #toAnswer(text: string): unknown {
    const message = JSON.parse(text) as Call | readonly Call[]; // A request of our own client.
    if (!("method" in message)) return this.takesBatches ? message.map((call) => this.#answerTo(call)) : batchRefusal;
    return this.#answerTo(message);
  }

  #answerTo(call: Call): unknown {
    this.methods.push(call.method);
    if (this.answer !== undefined) return this.answer(call);
    return { jsonrpc: "2.0", id: call.id, result: this.chain.answer(call.method) };
  }
}
