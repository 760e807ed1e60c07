import { AbortScope } from "./lib/abort-scope.ts";
import { readBody } from "./lib/read-body.ts";
import type { CallOptions, SteleOptions } from "./options.ts";
import { isBrokerCode, SteleError, toFailure, toProtocolError } from "./stele-error.ts";

export interface HttpRequest {
  readonly url: string;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Status and body of an answer, and what its headers say about a retry. */
export interface HttpAnswer {
  readonly status: number;
  readonly value: unknown;
  readonly retry: boolean | undefined;
  readonly retryAfterMs: number | undefined;
}

const timeoutDefaultMs = 60_000;
/** Longest answer that the client reads, in bytes. A broker's answers are shorter, but another server may send an endless one. */
const answerBytesMax = 64 * 1024 * 1024;
/** Node's codes for a connection that could not be made, if the error does not say so itself: the broker got nothing. Browsers give no code. */
const unsentCodes: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  "ERR_SSL_WRONG_VERSION_NUMBER", // https at a port that speaks http; newer versions of Node give the next code.
  "ERR_SSL_PACKET_LENGTH_TOO_LONG",
]);
/** Node's codes for a certificate that it does not accept. It checks the certificate before it sends the request. */
const certificateCodes = /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|HOSTNAME_MISMATCH$|INVALID_)/;
const unknownAuthorityCodes = /^(?:UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_)/;

/** Sends the requests of one client. */
export class HttpTransport {
  readonly base: string;
  readonly adminBase: string;
  readonly #options: SteleOptions;
  readonly #fetch: typeof fetch;

  /** @throws TypeError if an address is not a URL of http or https, or has a user name or a password. */
  constructor(options: SteleOptions) {
    this.base = toBase(options.url);
    this.adminBase = toBase(options.adminUrl ?? options.url);
    this.#options = options;
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /**
   * Sends a request, and does not wait for the body of the response.
   * @throws SteleError if no response comes or the response is a redirect; the reason of an aborted signal.
   */
  async open({ url, method, headers, body }: HttpRequest, { signal, traceparent }: CallOptions): Promise<Response> {
    const credential = await this.#findCredential();
    const init: RequestInit = {
      method,
      headers: toHeaders({
        ...headers,
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
        ...(traceparent === undefined ? {} : { traceparent }),
      }),
      redirect: "manual", // A key must not travel to another server.
      ...(body === undefined ? {} : { body }),
      ...(signal === undefined ? {} : { signal }),
    };
    try {
      return checkNoRedirect(await this.#fetch(url, init), url);
    } catch (error) {
      if (error instanceof SteleError) throw error;
      throw toNoAnswerError(error, { url, signal });
    }
  }

  /** @throws SteleError if the key function fails; a retry may help, because the function may renew a token. */
  async #findCredential(): Promise<string | undefined> {
    const { key } = this.#options;
    if (typeof key !== "function") return key;
    try {
      return await key();
    } catch (cause) {
      throw new SteleError("the function of the option key failed", { retry: true, wasRefused: true, cause });
    }
  }

  /** Sends a request and reads its JSON answer within the time limit. @throws SteleError if no such answer comes; the reason of an aborted signal. */
  async ask(request: HttpRequest, options: CallOptions): Promise<HttpAnswer> {
    const scope = new AbortScope(options.signal);
    scope.abortAfter(
      this.#options.timeoutMs ?? timeoutDefaultMs,
      () => new DOMException("no answer in time", "TimeoutError"),
    );
    try {
      const asking = this.open(request, { ...options, signal: scope.signal }).then((response) =>
        readAnswer(response, request.url),
      );
      return await scope.race(asking);
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof SteleError) throw error;
      throw toCutAnswerError(error, request.url);
    } finally {
      scope.close();
    }
  }
}

const jsonType = /^application\/(?:[\w.-]+\+)?json/i;

/**
 * Reads a response as JSON. Errors name `url`, since a response that a custom `fetch` has made does not know its URL.
 * @throws SteleError if the body is not JSON; the stream's error if the connection breaks.
 */
export async function readAnswer(response: Response, url: string): Promise<HttpAnswer> {
  const text = await readText(response, url);
  const { headers, status } = response;
  const hint = headers.get("stele-error-retry");
  const advice = { retry: hint === null ? undefined : hint === "true", retryAfterMs: findRetryAfterMs(headers) };
  try {
    return { status, value: JSON.parse(text), ...advice };
  } catch {
    // Without a length or chunks, as some proxies answer, a cut body looks complete.
    if (response.ok && jsonType.test(headers.get("content-type") ?? "") && lacksEnd(text)) {
      throw new SteleError(`${url} sent only a part of its JSON`, { retry: true });
    }
    throw toForeignAnswerError(url, { status, ...advice }, `status ${status}, no JSON`);
  }
}

/** @throws SteleError if the body is too long; the stream's error if the connection breaks. */
async function readText(response: Response, url: string): Promise<string> {
  // React Native and some `fetch` packages have no streams of their own.
  if (typeof response.body?.getReader !== "function") return response.text();
  const bytes = await readBody(response.body.getReader(), answerBytesMax);
  if (bytes === undefined) throw toProtocolError(url, `more than ${answerBytesMax} bytes`);
  return new TextDecoder().decode(bytes);
}

/** Whether a text is only the beginning of a JSON value: it is empty, or ends inside a string or with an open bracket. */
function lacksEnd(text: string): boolean {
  if (!/^\s*[{[]/.test(text)) return text.trim() === "";
  let depth = 0;
  let isString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === "\\" && isString) at += 1;
    else if (character === '"') isString = !isString;
    else if (!isString && (character === "{" || character === "[")) depth += 1;
    else if (!isString && (character === "}" || character === "]")) depth -= 1;
  }
  return isString || depth > 0;
}

/** Whether a status says that the same request may succeed later (RFC 9110, section 15). A proxy in front of the broker may have sent the status. */
export function isTransient(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** The error in an answer that has REST's form of a failure; else undefined. Every HTTP interface uses this form when access control refuses a caller. */
export function findRestError({ value, retry, retryAfterMs }: HttpAnswer): SteleError | undefined {
  if (!isRecord(value) || !isBrokerCode(value["code"]) || typeof value["message"] !== "string") return undefined;
  return toFailure(
    { code: value["code"], message: value["message"] },
    { retryAfterMs, ...(retry === undefined ? {} : { retry }) },
  );
}

/**
 * The error for an answer that does not follow the broker's interface. With a transient status, the error allows a retry: a proxy answers with such a status
 * when its broker is down.
 */
export function toForeignAnswerError(
  url: string,
  { status, retryAfterMs }: Pick<HttpAnswer, "status" | "retryAfterMs">,
  detail = `status ${status}`,
): SteleError {
  if (isTransient(status)) return new SteleError(`${url} answers with status ${status}`, { retry: true, retryAfterMs });
  return toProtocolError(url, detail);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** undici's message, without a code, for a port that the Fetch standard (section 2.9) blocks, such as 6000 or 10080. */
const blockedPort = "bad port";
/** Node's codes for an answer in plain text to the first bytes of TLS. */
const plainCodes = /^ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG)$/;

/** The error for a request without an answer; the reason of `signal` if the signal is aborted. */
function toNoAnswerError(
  error: unknown,
  { url, signal }: { readonly url: string; readonly signal: AbortSignal | undefined },
): unknown {
  if (signal?.aborted === true) return signal.reason;
  const cause = causeOf(error);
  const code = isRecord(cause) ? cause["code"] : undefined;
  const { origin } = new URL(url);
  if (typeof code === "string" && certificateCodes.test(code)) {
    const remedy = unknownAuthorityCodes.test(code) ? ": NODE_EXTRA_CA_CERTS can name the file of its authority" : "";
    return new SteleError(`the certificate of ${origin} is not accepted (${code})${remedy}`, {
      retry: false,
      wasRefused: true,
      cause: error,
    });
  }
  if (cause instanceof Error && cause.message === blockedPort) {
    const message = `${origin} has a port to which fetch does not connect (${blockedPort}): let the broker listen on another`;
    return new SteleError(message, { retry: false, wasRefused: true, cause: error });
  }
  const why = isTimeout(error) ? "in time" : `(${findReason(cause) ?? "no connection"})`;
  return new SteleError(`${origin} does not answer ${why}${explain(cause)}`, {
    retry: true,
    wasRefused: isUnsent(cause),
    cause: error,
  });
}

/** The error for an answer that began, but whose body broke off or did not come in time. */
export function toCutAnswerError(error: unknown, url: string): SteleError {
  const { origin } = new URL(url);
  const what = isTimeout(error)
    ? `${origin} does not answer in time`
    : `the answer of ${origin} broke off (${findReason(causeOf(error)) ?? "no reason given"})`;
  return new SteleError(what, { retry: true, cause: error });
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

/** Undefined in a browser, which gives no reason. */
function findReason(cause: unknown): string | undefined {
  const code = isRecord(cause) ? cause["code"] : undefined;
  if (typeof code === "string") return code;
  return cause instanceof Error && cause.message !== "" ? cause.message : undefined;
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "TimeoutError";
}

/** Whether no connection was made. Node tries each address of a name, and gives an AggregateError if it could connect to none. */
function isUnsent(cause: unknown): boolean {
  if (!isRecord(cause)) return false;
  return cause["syscall"] === "connect" || cause instanceof AggregateError || unsentCodes.has(cause["code"]);
}

/** What the cause of a failed connection says about the other side, after a colon; "" if nothing. */
function explain(cause: unknown): string {
  if (!isRecord(cause)) return "";
  const { name, code } = cause;
  if (typeof code === "string" && plainCodes.test(code)) return ": it speaks HTTP, not HTTPS";
  // undici's error for an answer that is not HTTP. Only some versions of undici give it a code.
  return name === "HTTPParserError" ? ": it does not speak HTTP; is this the port of another protocol?" : "";
}

/** @throws SteleError for an invalid value. The error of `Headers` would show the key in its message. */
function toHeaders(values: Readonly<Record<string, string>>): Headers {
  try {
    return new Headers(values);
  } catch {
    throw new SteleError("the key, the traceparent or the place has characters that no header can carry", {
      retry: false,
      wasRefused: true,
    });
  }
}

/** @throws SteleError for a redirect. A browser hides the redirect's target, so there the message cannot name it. */
function checkNoRedirect(response: Response, url: string): Response {
  const isRedirect = response.type === "opaqueredirect" || [301, 302, 303, 307, 308].includes(response.status);
  if (!isRedirect) return response;
  const location = response.headers.get("location");
  const target = location !== null && URL.canParse(location, url) ? new URL(location, url).origin : "another address";
  void response.body?.cancel();
  throw new SteleError(`${url} redirects to ${target}: give the client the address of the broker itself`, {
    retry: false,
    wasRefused: true,
  });
}

function findRetryAfterMs(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  if (text === null) return undefined;
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
}

/** Leaves a URL with a password out of its errors. The error of `new URL` would show it. */
function toBase(url: string): string {
  const shown = url.includes("@") ? "" : `: ${url}`;
  if (!URL.canParse(url)) throw new TypeError(`not a URL${shown}`);
  const { protocol, origin, pathname, username, password } = new URL(url);
  if (username !== "" || password !== "")
    throw new TypeError("a URL with a user name or a password: give a key instead");
  if (protocol !== "http:" && protocol !== "https:") throw new TypeError(`not an http(s) URL${shown}`);
  return `${origin}${pathname}`.replace(/\/+$/, "");
}
