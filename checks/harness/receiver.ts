import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import type { EventBody } from "./client.ts";
import { findFreePort } from "./free-port.ts";
import { until } from "./until.ts";
import type { Ends } from "./socket-owner.ts";

/** A callback as it arrived. */
export interface Attempt {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly kind: "RESTful" | "JsonRPC";
  readonly subscriptionId: string;
  readonly event: EventBody;
  /** The broker that made the connection; undefined if the receiver cannot find out. */
  readonly sender: string | undefined;
  /** Time of arrival, by `performance.now()`. */
  readonly receivedAt: number;
  /** Whether the answer was 2xx and was sent completely. */
  isAccepted: boolean;
}

/** Answers an attempt, or leaves it unanswered. */
export type Behaviour = (attempt: Attempt, response: ServerResponse) => void;

/** A real HTTP server for callbacks. */
export interface Receiver extends AsyncDisposable {
  readonly url: string;
  /** Every attempt, in order of arrival. */
  readonly attempts: readonly Attempt[];
  /** Events that were accepted, in order. */
  accepted(): readonly EventBody[];
  setBehaviour(behaviour: Behaviour): void;
  /** Clears the list of attempts. */
  forget(): void;
  waitFor(what: string, condition: () => boolean, options?: { readonly timeoutMs?: number }): Promise<void>;
  /** Waits until the receiver has accepted this many events. */
  waitForCount(count: number, options?: { readonly timeoutMs?: number }): Promise<readonly EventBody[]>;
  /** Closes the port, so that the system refuses connections. */
  refuse(): Promise<void>;
  /** Listens on the same port again. */
  resume(): Promise<void>;
}

export interface ReceiverOptions {
  readonly behaviour?: Behaviour;
  /** Finds the broker that made a new connection by the ports of the connection's ends. */
  readonly senderOf?: SenderOf;
}

export type SenderOf = (ends: Ends) => string | undefined;

export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const receiver = new RecordingReceiver(options.behaviour ?? accept, options.senderOf ?? (() => undefined));
  await receiver.resume();
  return receiver;
}

/** Answers 200; a JsonRPC callback gets a JSON-RPC response. */
export const accept: Behaviour = (attempt, response) => {
  response.setHeader("content-type", "application/json");
  if (attempt.kind === "RESTful") response.end("{}");
  else response.end(JSON.stringify({ jsonrpc: "2.0", id: attempt.event.eventId, result: "ok" }));
};

class RecordingReceiver implements Receiver {
  readonly attempts: Attempt[] = [];
  /** Unique, so that a broker that still calls an earlier receiver on the same port gets 404. */
  readonly #path = `/hook/${randomUUID()}`;
  readonly #senders = new Map<Socket, string | undefined>();
  readonly #senderOf: SenderOf;
  #behaviour: Behaviour;
  #server: Server | undefined;
  #port = 0;

  constructor(behaviour: Behaviour, senderOf: SenderOf) {
    this.#behaviour = behaviour;
    this.#senderOf = senderOf;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}${this.#path}`;
  }

  accepted(): readonly EventBody[] {
    return this.attempts.filter((attempt) => attempt.isAccepted).map((attempt) => attempt.event);
  }

  setBehaviour(behaviour: Behaviour): void {
    this.#behaviour = behaviour;
  }

  forget(): void {
    this.attempts.length = 0;
  }

  async waitFor(what: string, condition: () => boolean, options: { readonly timeoutMs?: number } = {}): Promise<void> {
    await until(what, condition, options);
  }

  async waitForCount(count: number, options: { readonly timeoutMs?: number } = {}): Promise<readonly EventBody[]> {
    await until(`${count} events are accepted`, () => this.accepted().length >= count, options).catch(
      (error: unknown) => {
        const seen = this.attempts.map(
          ({ event, isAccepted }) => `${event.eventId}${isAccepted ? "" : " (not accepted)"}`,
        );
        throw new Error(`${this.accepted().length} of ${count} events arrived: ${seen.slice(-20).join(", ")}`, {
          cause: error,
        });
      },
    );
    return this.accepted();
  }

  async resume(): Promise<void> {
    const server = createServer((message, response) => {
      void this.#receive(message, response);
    });
    server.keepAliveTimeout = 60_000;
    server.on("connection", (socket: Socket) => {
      this.#senders.set(socket, this.#senderOf({ from: socket.remotePort ?? 0, to: socket.localPort ?? 0 }));
      socket.on("close", () => this.#senders.delete(socket));
      socket.on("error", () => {});
    });
    this.#port ||= await findFreePort();
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#server = server;
  }

  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#senders.keys()) socket.destroy();
    if (server === undefined) return;
    server.close();
    await once(server, "close");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.refuse();
  }

  async #receive(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const sender = this.#senders.get(message.socket);
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of message) chunks.push(chunk as Buffer); // No encoding is set, so chunks are buffers.
    } catch {
      return; // The broker closed the connection before the whole body arrived: this is not an attempt.
    }
    if (message.url?.startsWith(this.#path) !== true) {
      response.writeHead(404).end();
      return;
    }
    const attempt = toAttempt(message, { body: Buffer.concat(chunks), sender });
    this.attempts.push(attempt);
    response.once("finish", () => {
      attempt.isAccepted = response.statusCode >= 200 && response.statusCode < 300;
    });
    this.#behaviour(attempt, response);
  }
}

interface CallbackBody {
  readonly subscriptionId: string;
  readonly event: EventBody;
}

function toAttempt(message: IncomingMessage, { body, sender }: Pick<Attempt, "body" | "sender">): Attempt {
  // Other checks test the shape.
  const parsed = JSON.parse(body.toString()) as CallbackBody | { readonly params: CallbackBody };
  const isRpc = "params" in parsed;
  const { subscriptionId, event } = isRpc ? parsed.params : parsed;
  const { url: path = "", method = "", headers } = message;
  return {
    path,
    method,
    headers,
    body,
    kind: isRpc ? "JsonRPC" : "RESTful",
    subscriptionId,
    event,
    sender,
    receivedAt: performance.now(),
    isAccepted: false,
  };
}
