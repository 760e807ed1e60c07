import type { Readable } from "node:stream";
import { type Dispatcher, errors, Pool } from "undici";
import { describeNetworkFailure, isBeforeConnection } from "../../../lib/network-failure.ts";
import { parseRetryAfter } from "../../../lib/retry-after.ts";
import { Semaphore } from "../../../lib/semaphore.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { EndpointAddress } from "./address.ts";
import {
  answerBytesMax,
  connectTimeoutMs,
  findError,
  parseBatch,
  parseObject,
  type RawAnswer,
  readAnswer,
  requestTimeoutMs,
} from "./answer.ts";
import type { Connection, ConnectionOptions, RpcCall } from "./connection.ts";
import { EndpointError, RpcAnswerError } from "./endpoint-error.ts";
import { toRpcFailure } from "./rpc-failure.ts";

/** Upper bound on the HTTP connections to one endpoint; further requests wait for a free one, within their timeout. */
const connectionsMax = 64;
/**
 * Upper bound on the transactions that are sent at once to one endpoint. The other connections stay free to read blocks, even if the endpoint answers
 * transactions late.
 */
const sendsMax = 32;
/** Geth's error code for the calls of a batch whose answers together exceed geth's size limit. */
const batchTooLongCode = -32003;
interface Message extends RpcCall {
  readonly jsonrpc: "2.0";
  readonly id: number;
}

/**
 * How long `requestAll` sends single requests, in milliseconds, after the endpoint refused a batch or left calls of two batches in a row unanswered. Then it
 * tries a batch.
 */
const singlesMs = 600_000;
/** Statuses with which endpoints refuse batches. 500 is not one of them, since it may have any cause. */
const batchRefusals: ReadonlySet<number> = new Set([400, 405, 413, 415, 422, 501]);
/**
 * Statuses of load balancers, and of gateways that refuse a key, a payment or a rate. Their bodies sometimes look like a chain node's answer. 403 is not one of
 * them, since gateways also refuse single methods with it.
 */
const gatewayStatuses: ReadonlySet<number> = new Set([401, 402, 429, 502, 503, 504]);
/** Error codes with which endpoints refuse batches: parse error and invalid request (JSON-RPC 2.0, section 5.1). */
const batchRefusalCodes: ReadonlySet<number> = new Set([-32700, -32600]);

interface PostOptions<T> {
  readonly signal: AbortSignal;
  readonly read: (response: Dispatcher.ResponseData, text: string) => T;
}

/** JSON-RPC over HTTP: one POST per request or batch on persistent connections, no redirects, no retries. */
export class HttpConnection implements Connection {
  readonly canNotify = false;
  readonly #address: EndpointAddress;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #pool: Pool;
  readonly #sends = new Semaphore(sendsMax);
  readonly #path: string;
  readonly #headers: Readonly<Record<string, string>>;
  #id = 0;
  /** Until when `requestAll` sends single requests, on the monotonic clock. */
  #singlesUntil = Number.NEGATIVE_INFINITY;
  /** Whether the latest batch left some calls unanswered. If it happens once, only one of many chain nodes behind a load balancer may be the cause. */
  #wasShort = false;

  constructor(address: EndpointAddress, options: ConnectionOptions) {
    const { origin, pathname, search } = new URL(address.text);
    this.#address = address;
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutMs ?? requestTimeoutMs;
    this.#pool = new Pool(origin, { connections: connectionsMax, connect: { timeout: connectTimeoutMs } });
    this.#pool.on("disconnect", (_origin, _targets, error) => {
      if (!wasAnnounced(error)) options.events.onLost(describeNetworkFailure(error));
    });
    this.#path = `${pathname}${search}`;
    this.#headers = { "content-type": "application/json", ...address.headers };
  }

  get name(): string {
    return this.#address.name;
  }

  async request(call: RpcCall): Promise<unknown> {
    const signal = AbortSignal.timeout(this.#timeoutMs);
    const post = async (): Promise<unknown> =>
      this.#post(this.#toMessage(call), { signal, read: (response, text) => this.#read(response, text, call.method) });
    if (call.method !== "eth_sendRawTransaction") return post();
    const answer = await this.#sends.run(post, signal);
    if (answer === undefined) throw this.#late();
    return answer;
  }

  /** One batch in one POST (JSON-RPC 2.0, section 6), so that one chain node answers; single requests if the endpoint refuses batches. */
  async requestAll(calls: readonly RpcCall[]): Promise<readonly unknown[]> {
    const messages = calls.map((call) => this.#toMessage(call));
    const mayBatch = this.#clock.monotonic() >= this.#singlesUntil;
    const results = mayBatch
      ? await this.#post(messages, {
          signal: AbortSignal.timeout(this.#timeoutMs),
          read: (response, text) => this.#readBatch(response, { text, messages }),
        })
      : "refused";
    const wasShort = this.#wasShort;
    this.#wasShort = results === "short";
    if (typeof results === "object") return results;
    const singles: unknown[] = [];
    for (const call of calls) singles.push(await this.request(call));
    if (mayBatch && (results === "refused" || wasShort)) this.#singlesUntil = this.#clock.monotonic() + singlesMs;
    return singles;
  }

  #toMessage({ method, params = [] }: RpcCall): Message {
    this.#id += 1;
    return { jsonrpc: "2.0", id: this.#id, method, params };
  }

  async #post<T>(message: unknown, { signal, read }: PostOptions<T>): Promise<T> {
    const body = JSON.stringify(message);
    try {
      const response = await this.#pool.request({
        path: this.#path,
        method: "POST",
        headers: this.#headers,
        body,
        signal,
        headersTimeout: this.#timeoutMs,
        bodyTimeout: this.#timeoutMs,
      });
      return read(response, await this.#collect(response.body));
    } catch (error) {
      throw this.#toFailure(error, signal);
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #collect(body: Readable): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > answerBytesMax) {
        throw this.#failure(`the answer is longer than ${answerBytesMax} bytes`, { reach: "answer-too-long" });
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  /** The results of a batch; `refused` if the endpoint refuses batches, `short` if its answer lacks some of the ids. */
  #readBatch(
    response: Dispatcher.ResponseData,
    { text, messages }: { readonly text: string; readonly messages: readonly Message[] },
  ): readonly unknown[] | "refused" | "short" {
    const ids = messages.map(({ id }) => id);
    const answers = response.statusCode === 200 ? parseBatch(text, ids) : undefined;
    if (answers !== undefined) {
      const isWhole = answers.every((answer) => answer !== undefined);
      return isWhole ? answers.map((answer, at) => this.#readOfBatch(answer, messages[at]?.method)) : "short";
    }
    if (batchRefusals.has(response.statusCode)) return "refused";
    try {
      this.#read(response, text);
    } catch (error) {
      if (error instanceof RpcAnswerError && batchRefusalCodes.has(error.code)) return "refused";
      throw error;
    }
    throw this.#failure("the answer to a batch is not an array", { reach: "unknown" });
  }

  #readOfBatch(answer: RawAnswer, method: string | undefined): unknown {
    if (findError(answer, this.#address)?.code === batchTooLongCode) {
      throw this.#failure("the answer exceeds the endpoint's size limit", { reach: "answer-too-long" });
    }
    return readAnswer(answer, this.#address, method);
  }

  #read({ statusCode, headers }: Dispatcher.ResponseData, text: string, method?: string): unknown {
    if (statusCode === 200) return readAnswer(parseObject(text), this.#address, method);
    const answer = parseObject(text);
    const error = answer === undefined ? undefined : findError(answer, this.#address, method);
    if (error !== undefined && !gatewayStatuses.has(statusCode)) throw error;
    const header = headers["retry-after"];
    const retryAfterMs = parseRetryAfter(typeof header === "string" ? header : undefined, this.#clock.now());
    const isOverLimit = statusCode === 429;
    const reason = error === undefined ? "" : `: ${toRpcFailure(error).message}`;
    throw this.#failure(`answered HTTP ${statusCode}${reason}`, {
      reach: reachOf(statusCode),
      retryAfterMs,
      isOverLimit,
    });
  }

  #toFailure(error: unknown, signal: AbortSignal): unknown {
    if (!(error instanceof Error) || error instanceof EndpointError || error instanceof RpcAnswerError) return error;
    if (signal.aborted) return this.#late();
    const reach = isBeforeConnection(error) ? "unreached" : "unknown";
    return this.#failure(describeNetworkFailure(error), { reach });
  }

  #late(): EndpointError {
    return this.#failure(`no answer within ${this.#timeoutMs} ms`, { reach: "unknown" });
  }

  #failure(reason: string, options: ConstructorParameters<typeof EndpointError>[1]): EndpointError {
    return new EndpointError(`${this.name}: ${reason}`, options);
  }
}

/**
 * Whether a connection ended as its answer announced: some endpoints close it after each answer or each refusal. undici uses this error only if the answer is
 * complete and the connection must not be used again.
 */
function wasAnnounced(error: Error): boolean {
  return error instanceof errors.InformationalError && error.message === "reset";
}

function reachOf(status: number): "unreached" | "unknown" | "too-large" {
  if (status === 413) return "too-large";
  // A redirect, a missing key or a rate limit: the server has not processed the request (RFC 9110, section 15).
  return status >= 300 && status < 500 && status !== 408 ? "unreached" : "unknown";
}
