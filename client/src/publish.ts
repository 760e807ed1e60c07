import type { SendResult } from "@stele/wire";
import type { HttpTransport } from "./http-transport.ts";
import { toBase64 } from "./lib/base64.ts";
import { pause } from "./lib/backoff.ts";
import { randomKey } from "./lib/random-key.ts";
import type { CallOptions } from "./options.ts";
import { mayRepeat, toPauseMs, withRetries } from "./retries.ts";
import { callRpc, callRpcBatch, type RpcCall, type RpcOutcome, toObject } from "./rpc.ts";
import { withUnknownOutcome, SteleError, toProtocolError, transactionTimeout } from "./stele-error.ts";

/** Content of an event. The client sends bytes (a buffer, or a view of one) as they are, text as UTF-8, and anything else as JSON with `svc-format`. */
export type Content = string | ArrayBuffer | ArrayBufferView | object;

export interface PublishOptions extends CallOptions {
  /** Keys begin with the broker's extension prefix, `svc-` by default. */
  readonly extensions?: Readonly<Record<string, string>> | undefined;
  /**
   * Key of this publish, so that every repeat gives the same event: 1 to 255 visible ASCII characters, or `true` for a random key. Without `once`, the
   * client repeats a publish only if the failed try surely published nothing.
   */
  readonly once?: string | boolean | undefined;
}

/** One event for `publishMany`. */
export interface Publication extends Pick<PublishOptions, "extensions" | "once"> {
  readonly topic: string;
  readonly content: Content;
}

/** An event that is on the chain. */
export interface Published {
  readonly topic: string;
  readonly eventId: string;
}

/** The outcome of one event of `publishMany`. */
export type PublishOutcome =
  | ({ readonly status: "published" } & Published)
  | { readonly status: "failed"; readonly topic: string; readonly error: SteleError };

/** Maximum number of events of one request; a broker accepts no more. */
const batchEventsMax = 1_000;
/** Maximum number of bytes of a request with several events. A broker accepts 1 MiB by default. */
const batchBytesMax = 786_432;
const extensionPrefixDefault = "svc-";
/** Extension that names the format of the content, without the prefix. */
const formatName = "format";
/** The broker's code for a malformed request, and the part of its message that says that the request is too long. No other field of the answer says so. */
const parameterInvalid = 200001;
const tooLong = /body is over \d+ bytes/;
const encoder = new TextEncoder();

interface Publisher {
  readonly transport: HttpTransport;
  readonly retries: number;
  readonly groupId: string | undefined;
  readonly extensionPrefix: string | undefined;
}

/** Publishes one event. @throws SteleError, also if the broker does not know in time whether the event is on the chain (200201). */
export async function publishOne(
  { transport, retries, ...rest }: Publisher,
  publication: Publication,
  options: CallOptions,
): Promise<Published> {
  const call = toCall(publication, rest);
  return withRetries(async () => toPublished(transport.base, await callRpc(transport, call, options)), {
    retries,
    isRepeatable: hasPublishKey(call),
    signal: options.signal,
  });
}

/**
 * Publishes many events, in as few requests as possible. The broker numbers the events of a request in order. The outcomes are in the order of
 * the events. An event that the client had to repeat may come after later ones.
 * @throws the reason of an aborted signal.
 */
export async function publishMany(
  publisher: Publisher,
  publications: readonly Publication[],
  options: CallOptions,
): Promise<readonly PublishOutcome[]> {
  const calls = publications.map((publication) => toCall(publication, publisher));
  const outcomes: PublishOutcome[] = [];
  for (const batch of toBatches(calls)) outcomes.push(...(await publishBatch(publisher, batch, options)));
  return outcomes;
}

async function publishBatch(
  { transport, retries }: Publisher,
  calls: readonly RpcCall[],
  options: CallOptions,
): Promise<readonly PublishOutcome[]> {
  const outcomes = new Map<RpcCall, PublishOutcome>();
  const doubtful = new Set<RpcCall>();
  let pending = calls;
  for (let tries = 0; pending.length > 0; tries += 1) {
    options.signal?.throwIfAborted();
    const failed: SteleError[] = [];
    const answers = await ask(transport, pending, options);
    pending = pending.filter((call, index) => {
      const outcome = withDoubt(toOutcome(transport.base, call, answers[index]), doubtful.has(call));
      outcomes.set(call, outcome);
      if (outcome.status === "published" || tries >= retries || !mayRepeat(outcome.error, hasPublishKey(call)))
        return false;
      failed.push(outcome.error);
      if (!outcome.error.wasRefused) doubtful.add(call);
      return true;
    });
    if (pending.length > 0) await pause(Math.max(...failed.map((error) => toPauseMs(error, tries))), options.signal);
  }
  return calls.flatMap((call) => outcomes.get(call) ?? []);
}

/**
 * Sends the calls in one request. If the request is too long for this broker, sends each half by itself. If the whole request fails otherwise, each call
 * gets that error.
 */
async function ask(
  transport: HttpTransport,
  calls: readonly RpcCall[],
  options: CallOptions,
): Promise<readonly RpcOutcome[]> {
  try {
    return await callRpcBatch(transport, calls, options);
  } catch (error) {
    if (!(error instanceof SteleError)) throw error;
    const isTooLong = error.code === parameterInvalid && tooLong.test(error.message);
    if (!isTooLong || calls.length === 1) return calls.map(() => ({ error }));
    const middle = Math.ceil(calls.length / 2);
    const first = await ask(transport, calls.slice(0, middle), options);
    return [...first, ...(await ask(transport, calls.slice(middle), options))];
  }
}

function toOutcome(base: string, call: RpcCall, answer: RpcOutcome | undefined): PublishOutcome {
  const topic = String(call.params["topic"]);
  try {
    if (answer === undefined || "error" in answer) throw answer?.error;
    return { status: "published", ...toPublished(base, answer.result) };
  } catch (error) {
    if (!(error instanceof SteleError)) throw error;
    return { status: "failed", topic, error };
  }
}

function withDoubt(outcome: PublishOutcome, isDoubtful: boolean): PublishOutcome {
  if (outcome.status === "published" || !isDoubtful) return outcome;
  return { ...outcome, error: withUnknownOutcome(outcome.error) };
}

function toPublished(base: string, result: unknown): Published {
  const { topic, eventId, status } = toObject(base, result) as SendResult; // The broker guarantees this shape.
  const isPublished = status === "SUCCESS";
  if (isPublished && typeof eventId === "string") return { topic, eventId };
  if (isPublished || typeof status !== "string")
    throw toProtocolError(base, "a publish result without status or eventId");
  throw new SteleError("transaction timed out, its fate is not known yet", { code: transactionTimeout, retry: true });
}

function toCall(
  { topic, content, extensions, once }: Publication,
  { groupId, extensionPrefix = extensionPrefixDefault }: Pick<Publisher, "groupId" | "extensionPrefix">,
): RpcCall {
  const plain = findBytes(content);
  const bytes = plain ?? encoder.encode(toJson(content));
  const allExtensions =
    plain === undefined ? { [`${extensionPrefix}${formatName}`]: "json", ...extensions } : extensions;
  return {
    method: "publish",
    params: {
      topic,
      content: toBase64(bytes),
      ...(groupId === undefined ? {} : { groupId }),
      ...(allExtensions === undefined ? {} : { extensions: allExtensions }),
      ...(once === undefined || once === false ? {} : { idempotencyKey: once === true ? randomKey() : once }),
    },
  };
}

/** The bytes of text or binary content; undefined for content to send as JSON. */
function findBytes(content: Content): Uint8Array | undefined {
  if (typeof content === "string") return encoder.encode(content);
  if (isBuffer(content)) return new Uint8Array(content);
  if (!ArrayBuffer.isView(content)) return undefined;
  return new Uint8Array(content.buffer, content.byteOffset, content.byteLength);
}

/** Whether a value is a buffer, also one of another realm, such as a frame or a test environment. */
function isBuffer(content: object): content is ArrayBuffer {
  return /^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(content));
}

/** The content as JSON. @throws TypeError for a function, a cycle, a promise, a blob, or anything else that JSON cannot express. */
function toJson(content: Content): string {
  const text: unknown = JSON.stringify(content); // It may be undefined, which the declared type leaves out.
  if (typeof text !== "string" || (text === "{}" && !isPlain(content))) {
    throw new TypeError("JSON cannot express the content");
  }
  return text;
}

/** Whether an object is a plain one, without a class. JSON writes `{}` for a promise, a map or a blob too. */
function isPlain(content: Content): boolean {
  const prototype: unknown = Object.getPrototypeOf(content);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function hasPublishKey({ params }: RpcCall): boolean {
  return params["idempotencyKey"] !== undefined;
}

function* toBatches(calls: readonly RpcCall[]): Generator<readonly RpcCall[]> {
  let batch: RpcCall[] = [];
  let bytes = 0;
  for (const call of calls) {
    const callBytes = encoder.encode(JSON.stringify(call)).length + 32; // 32 for the other members of the message.
    if (batch.length === batchEventsMax || (batch.length > 0 && bytes + callBytes > batchBytesMax)) {
      yield batch;
      [batch, bytes] = [[], 0];
    }
    batch.push(call);
    bytes += callBytes;
  }
  if (batch.length > 0) yield batch;
}
