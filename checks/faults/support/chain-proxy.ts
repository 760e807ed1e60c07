import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Agent, request } from "undici";

/** A JSON-RPC request of the broker. */
export interface NodeCall {
  readonly id: unknown;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** One HTTP request on its way to the chain node. */
export interface Passage {
  readonly calls: readonly NodeCall[];
  readonly response: ServerResponse;
  /** Forwards the request to the chain node and returns the answer. */
  forward(): Promise<Buffer>;
  /** Sends another request to the chain node. @throws Error with the chain node's error. */
  ask(method: string, params: readonly unknown[]): Promise<unknown>;
}

/** Handles a request, or leaves it without an answer. */
export type Treatment = (passage: Passage) => void | Promise<void>;

/** Forwards the request and its answer. */
export const pass: Treatment = async (passage) => void passage.response.end(await passage.forward());

/** An HTTP proxy between a broker and its chain node, which can inject faults. It keeps its port while the chain node is down. */
export class ChainProxy implements AsyncDisposable {
  /** Number of requests by method. */
  readonly counts = new Map<string, number>();
  readonly #agent = new Agent({ connections: 64, headersTimeout: 60_000, bodyTimeout: 60_000 });
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #target: string;
  #treatment: Treatment = pass;

  private constructor(target: string) {
    this.#target = target;
  }

  static async start(target: string): Promise<ChainProxy> {
    const proxy = new ChainProxy(target);
    await proxy.listen();
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Handles each request with `treatment` from now on. */
  treat(treatment: Treatment): void {
    this.#treatment = treatment;
  }

  /** Forwards requests to another chain node from now on. */
  retarget(target: string): void {
    this.#target = target;
  }

  /** Accepts connections. After `refuse`, uses the same port again. */
  async listen(): Promise<void> {
    const server = createServer((message, response) => void this.#handle(message, response));
    server.keepAliveTimeout = 60_000;
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
      socket.on("error", () => {}); // The broker may close at any time.
    });
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#port = (server.address() as AddressInfo).port; // A TCP server.
    this.#server = server;
  }

  /** Resets all connections and refuses new ones. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    server?.close();
    for (const socket of this.#sockets) socket.resetAndDestroy();
    if (server !== undefined) await once(server, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.refuse();
    await this.#agent.destroy();
  }

  async #handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of message) chunks.push(chunk as Buffer); // Without an encoding, chunks are buffers.
      const body = Buffer.concat(chunks);
      const parsed = JSON.parse(body.toString()) as NodeCall | readonly NodeCall[]; // JSON-RPC 2.0.
      const calls = Array.isArray(parsed) ? parsed : [parsed];
      for (const { method } of calls) this.counts.set(method, (this.counts.get(method) ?? 0) + 1);
      response.setHeader("content-type", "application/json");
      await this.#treatment({
        calls,
        response,
        forward: () => this.#post(body),
        ask: (method, params) => this.#ask(method, params),
      });
    } catch {
      // The chain node is down: reset the broker's connection too.
      response.socket?.resetAndDestroy();
    }
  }

  async #post(body: string | Buffer): Promise<Buffer> {
    const answer = await request(this.#target, {
      method: "POST",
      body,
      headers: { "content-type": "application/json" },
      dispatcher: this.#agent,
    });
    return Buffer.from(await answer.body.arrayBuffer());
  }

  async #ask(method: string, params: readonly unknown[]): Promise<unknown> {
    const answer = await this.#post(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
    const { result, error } = JSON.parse(answer.toString()) as { result?: unknown; error?: unknown }; // JSON-RPC 2.0.
    if (error !== undefined) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return result;
  }
}
