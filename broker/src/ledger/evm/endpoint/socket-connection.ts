import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import type { EndpointAddress } from "./address.ts";
import { connectTimeoutMs, parseObject, type RawAnswer, readAnswer, requestTimeoutMs } from "./answer.ts";
import type { Channel, OpenChannel } from "./channel.ts";
import type { Connection, ConnectionOptions, RpcCall } from "./connection.ts";
import { EndpointError } from "./endpoint-error.ts";

/** Upper bound on the requests in progress on one WebSocket or IPC connection; further ones fail. */
const requestsMax = 1024;

export interface SocketConnectionOptions extends ConnectionOptions {
  readonly open: OpenChannel;
}

interface Pending {
  readonly method: string;
  readonly answer: Deferred<unknown>;
  readonly cancelTimeout: () => void;
}

interface OpenSocket {
  readonly channel: Channel;
  readonly isOpen: Deferred<void>;
}

/** JSON-RPC over a channel that carries concurrent requests and notifications. */
export class SocketConnection implements Connection {
  readonly canNotify = true;
  readonly #address: EndpointAddress;
  readonly #options: SocketConnectionOptions;
  readonly #timeoutMs: number;
  readonly #pending = new Map<number, Pending>();
  /** Requests that wait for the channel to open. */
  #entering = 0;
  #socket: OpenSocket | undefined;
  #id = 0;
  /** Messages received so far, over all channels. */
  #messages = 0;
  #isEnded = false;

  constructor(address: EndpointAddress, options: SocketConnectionOptions) {
    this.#address = address;
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? requestTimeoutMs;
  }

  get name(): string {
    return this.#address.name;
  }

  async request({ method, params = [] }: RpcCall): Promise<unknown> {
    if (this.#pending.size + this.#entering >= requestsMax)
      throw this.#failure(`${requestsMax} requests are in progress`, "unreached");
    this.#entering += 1;
    let channel: Channel;
    try {
      channel = await this.#connect();
    } finally {
      this.#entering -= 1;
    }
    this.#id += 1;
    const id = this.#id;
    const answer = createDeferred<unknown>();
    const messagesBefore = this.#messages;
    const cancelTimeout = this.#options.clock.after(this.#timeoutMs, () => this.#onTimeout(id, messagesBefore));
    this.#pending.set(id, { method, answer, cancelTimeout });
    channel.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    return answer.promise;
  }

  async requestAll(calls: readonly RpcCall[]): Promise<readonly unknown[]> {
    return Promise.all(calls.map(async (call) => this.request(call)));
  }

  async close(): Promise<void> {
    this.#isEnded = true;
    const socket = this.#socket;
    this.#end(this.#failure("the broker closes the connection", "unknown"));
    socket?.channel.close();
  }

  async #connect(): Promise<Channel> {
    if (this.#isEnded) throw this.#failure("the broker closed the connection", "unreached");
    const socket = this.#socket ?? this.#open();
    await socket.isOpen.promise;
    return socket.channel;
  }

  #open(): OpenSocket {
    const isOpen = createDeferred<void>();
    const cancelTimeout = this.#options.clock.after(connectTimeoutMs, () => {
      this.#onClose(socket, this.#failure(`no connection within ${connectTimeoutMs} ms`, "unreached"));
      socket.channel.close();
    });
    const channel = this.#options.open({
      onOpen: () => {
        cancelTimeout();
        isOpen.resolve();
      },
      onMessage: (text) => this.#onMessage(socket, text),
      onClose: (failure) => {
        cancelTimeout();
        this.#onClose(socket, failure);
      },
    });
    const socket: OpenSocket = { channel, isOpen };
    this.#socket = socket;
    return socket;
  }

  /** Fails the request. If no message has arrived since the request, also closes the connection, which is dead although nobody closed it. */
  #onTimeout(id: number, messagesBefore: number): void {
    const failure = this.#failure(`no answer within ${this.#timeoutMs} ms`, "unknown");
    this.#settle(id)?.reject(failure);
    const socket = this.#socket;
    if (socket === undefined || this.#messages !== messagesBefore) return;
    this.#onClose(socket, failure);
    socket.channel.close();
  }

  #onClose(socket: OpenSocket, failure: EndpointError): void {
    socket.isOpen.reject(failure);
    if (this.#socket !== socket) return;
    this.#end(failure);
    if (!this.#isEnded) this.#options.events.onLost(failure.message);
  }

  #end(failure: EndpointError): void {
    this.#socket = undefined;
    // Any of the pending answers may be the one that is too long.
    const reach = failure.reach === "answer-too-long" ? failure.reach : "unknown";
    for (const id of this.#pending.keys()) this.#settle(id)?.reject(new EndpointError(failure.message, { reach }));
  }

  #onMessage(socket: OpenSocket, text: string): void {
    if (this.#socket !== socket) return;
    this.#messages += 1;
    const message = parseObject(text);
    if (message === undefined) {
      this.#onClose(socket, this.#failure("the answer is not JSON-RPC", "unknown"));
      socket.channel.close();
    } else if (message["method"] === "eth_subscription") this.#onNotification(message["params"]);
    else if (typeof message["id"] === "number") this.#onAnswer(message["id"], message);
  }

  #onNotification(params: unknown): void {
    if (typeof params !== "object" || params === null) return;
    const { subscription, result } = params as { subscription?: unknown; result?: unknown }; // The listener validates them.
    this.#options.events.onNotification({ subscription, result });
  }

  #onAnswer(id: number, message: RawAnswer): void {
    const method = this.#pending.get(id)?.method;
    const answer = this.#settle(id);
    if (answer === undefined) return;
    try {
      answer.resolve(readAnswer(message, this.#address, method));
    } catch (error) {
      answer.reject(error);
    }
  }

  #settle(id: number): Deferred<unknown> | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.cancelTimeout();
    return pending?.answer;
  }

  #failure(reason: string, reach: "unreached" | "unknown"): EndpointError {
    return new EndpointError(`${this.name}: ${reason}`, { reach });
  }
}
