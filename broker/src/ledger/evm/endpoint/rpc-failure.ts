import { BrokerError } from "@stele/wire";
import { EndpointError, type Reach, RpcAnswerError } from "./endpoint-error.ts";

/** What an endpoint's failure means for the ledger. Only this file knows the messages and codes of chain nodes. */
export type RpcFailureKind =
  /** No answer: the endpoint may have processed the request. */
  | "connection"
  /** No chain node processed the request: there was no connection, a rate limit was exceeded, or the transaction pool was full. */
  | "unreached"
  | "already-known"
  | "nonce-too-low"
  /** The endpoint has another pending transaction with the same nonce. */
  | "replacement-underpriced"
  | "underpriced"
  /** The endpoint lacks earlier nonces. */
  | "nonce-too-high"
  /** The transaction's gas is below the minimum for its kind. */
  | "gas-too-low"
  /** The transaction's size or gas exceeds a limit. */
  | "too-large"
  /** The transaction's gas times its price exceeds a limit of the endpoint. */
  | "fee-capped"
  | "insufficient-funds"
  /** Too many blocks or logs at once. */
  | "range-refused"
  /** The request exceeded a limit that the endpoint does not name, often a rate limit: the transaction may be good. */
  | "limit-exceeded"
  | "unsupported"
  | "refused";

export class RpcFailure extends Error {
  readonly kind: RpcFailureKind;

  constructor(kind: RpcFailureKind, message: string, options: { readonly cause: unknown }) {
    super(message, options);
    this.name = "RpcFailure";
    this.kind = kind;
  }
}

const wordings: readonly (readonly [RpcFailureKind, RegExp])[] = [
  [
    "too-large",
    /oversized data|exceeds.*(block|transaction|tx)[- ]?gas ?(limit|cap)|gas limit (is )?too high|gas ?limit ?(cap ?)?(exceeded|reached)|rlptoolong|intrinsic gas too high|(transaction|tx) (is )?too (large|big)|payload too large|entity too large|max(imum)? ?(tx|transaction) ?size/i,
  ],
  ["gas-too-low", /intrinsic gas (is )?(too low|exceeds)|intrinsicgas|floor data gas/i],
  ["nonce-too-high", /nonce ?(is )?too ?(high|far|distant)|nonce ?gap|futurenonce/i],
  [
    "already-known",
    /already (known|imported|mined|exists|in mempool)|(?<!un)known transaction|existing tx with same hash|already(known|intxpool|inchain)/i,
  ],
  ["nonce-too-low", /nonce too low|nonce is too low|oldnonce|invalid nonce; got|nonce.*already been used/i],
  [
    "replacement-underpriced",
    /replacement transaction underpriced|replacement.*(underpriced|too low)|replacement ?not ?allowed|could not replace/i,
  ],
  ["fee-capped", /exceeds the configured cap|fee ?cap ?exceeded/i],
  [
    "underpriced",
    /underpriced|max fee per gas less than block base fee|fee cap|(gas price|priority fee).*(too low|below)|fee ?too ?low/i,
  ],
  ["insufficient-funds", /insufficient ?(funds|balance)|upfront cost exceeds|up-front cost/i],
  [
    "range-refused",
    /blocks? range|range (is )?(too|limited)|ranges over|limited to .*range|max(imum)? (range|results)|too many (blocks|logs|results)|more than [\d,]+ (results|logs|blocks)|at most [\d,]+ blocks|number of requested blocks|blocks distance|response (size|too large)|query must be smaller|limit exceeded|exceed.*(limit|range)|query timeout/i,
  ],
];

/** Messages of full transaction pools. */
const fullPool = /pool ?is ?full/i;
/** Messages of rate limits, which mean that the endpoint did not process the request. */
const rateLimited =
  /rate.?limit|too many requests|request (count|rate) exceeded|rps limit|request limit reached|compute units per second|exceeded.*(capacity|quota)|are waiting, try later/i;
/** Messages of chain nodes and load balancers that gave up waiting for a backend. */
const outOfTime = /timed[ -]?out|time-?out|deadline exceeded/i;
/** Messages about a fault inside a chain node or load balancer. They do not say whether the request was processed. */
const internal =
  /internal (server |json-?rpc )?error|server error|bad gateway|unavailable|upstream|no response|connection (was )?(reset|closed|lost)|socket hang up|\bEOF\b|context cancel|error without a message/i;
/**
 * Messages of chain nodes about a call that failed in the contract. Chain nodes in Rust use the names that revm gives, such as "EVM error: OutOfGas(Basic)".
 */
const reverts =
  /revert|invalid ?(fe ?)?(opcode|jump)|opcode ?not ?found|bad (instruction|jump)|out ?of ?gas|stack ?(und|ov)erflow|vm (execution|exception)/i;
const revertCode = 3;
const unsupportedCodes: ReadonlySet<unknown> = new Set([-32601, -32004, 4200]);
const connectionCodes: ReadonlySet<unknown> = new Set([4900, 4901]);
const limitExceededCode = -32005;
const rateLimitedCode = 429;
const kindByReach = {
  unreached: "unreached",
  unknown: "connection",
  "too-large": "too-large",
  "answer-too-long": "range-refused",
} as const satisfies Record<Reach, RpcFailureKind>;
/** What an operator can do about a refusal. */
const remedies: Readonly<Partial<Record<RpcFailureKind, string>>> = {
  "insufficient-funds": "Give the signer's account a balance on this chain.",
  "fee-capped":
    "The node caps the fee of a transaction: raise its cap (geth: --rpc.txfeecap), or lower the group's transactionBytesMax or feeMaxGwei.",
  "replacement-underpriced":
    "The node's pool has a transaction with this nonce, and asks for a higher price: check the group's fees and feeMaxGwei, or remove that transaction.",
  underpriced: "The chain asks for a higher gas price: check the group's fees and feeMaxGwei.",
};
const fullPoolRemedy =
  "The node's transaction pool is full: raise its limits, or wait until blocks have taken its transactions.";
/** Characters kept of an error message: some contain whole requests. */
const messageCharactersMax = 300;

export function toRpcFailure(error: unknown): RpcFailure {
  if (error instanceof RpcFailure) return error;
  if (error instanceof EndpointError) return new RpcFailure(kindByReach[error.reach], error.message, { cause: error });
  const { code, message } = readError(error);
  return new RpcFailure(kindOf(code, message), message, { cause: error });
}

/** The failure of a request of this method. Names the method if it was refused: "method not found" alone tells an operator nothing. */
export function toFailureOf(method: string, error: unknown): RpcFailure {
  const failure = toRpcFailure(error);
  const { message, cause } = failure;
  // A batch has several methods.
  const asked = (cause instanceof RpcAnswerError ? cause.method : undefined) ?? method;
  const kind = kindFor(asked, failure);
  return new RpcFailure(kind, isUnanswered({ kind }) ? message : `${asked}: ${message}`, { cause });
}

/** Only a request for logs has a range that a caller could make smaller. A chain node or load balancer may fail after it passed a transaction on. */
function kindFor(method: string, { kind, message }: RpcFailure): RpcFailureKind {
  const isRange = kind === "range-refused";
  if (method !== "eth_sendRawTransaction") return isRange && method !== "eth_getLogs" ? "refused" : kind;
  const isVague = isRange || kind === "refused";
  if (isVague && (internal.test(message) || outOfTime.test(message))) return "connection";
  return isRange ? "limit-exceeded" : kind;
}

/** The error for an endpoint that answered without processing the request. */
export function toUnreached(name: string, error: unknown): EndpointError {
  const { message } = toRpcFailure(error);
  const isOverLimit = isRateLimited(readError(error instanceof RpcFailure ? error.cause : error).code, message);
  return new EndpointError(`${name}: ${message}`, { reach: "unreached", isOverLimit });
}

/** Whether the endpoint refused a transaction because its pool is full. It still answers other requests. */
export function isFullPool(error: unknown): boolean {
  return fullPool.test(readError(error).message);
}

/** Whether the endpoint did not answer, so that another attempt may succeed. */
export function isUnanswered({ kind }: Pick<RpcFailure, "kind">): boolean {
  return kind === "connection" || kind === "unreached";
}

/** Whether an error that `toBrokerError` made says that the endpoint caps the fee of a transaction. */
export function isFeeCapped(error: unknown): boolean {
  return error instanceof BrokerError && error.cause instanceof RpcFailure && error.cause.kind === "fee-capped";
}

/**
 * Whether the contract itself made the call fail. Any other failure may pass: a chain node that lacked a block or its state may have it at the next attempt.
 */
export function isRevert({ kind, message, cause }: RpcFailure): boolean {
  return kind === "refused" && (reverts.test(message) || readError(cause).code === revertCode);
}

/** The error for the ledger's caller. */
export function toBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  const failure = toRpcFailure(error);
  if (isUnanswered(failure)) {
    const details = failure.cause instanceof EndpointError ? { details: failure.message } : {};
    const hints = isFullPool(failure) ? [fullPoolRemedy] : [];
    return new BrokerError("chainUnreachable", { ...details, hints, cause: failure });
  }
  const remedy = remedies[failure.kind];
  const hints = remedy === undefined ? [] : [remedy];
  return new BrokerError("transactionFailed", { details: failure.kind, hints, cause: failure });
}

/**
 * The error for a caller if a read from the chain failed. Whatever the endpoint answered, a later attempt may succeed. An error that is no RpcFailure comes
 * from a fault of the broker or from an answer that it cannot decode: callers do not get its text.
 */
export function toReadError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  if (!(error instanceof RpcFailure)) return new BrokerError("unknown", { cause: error });
  return new BrokerError("chainUnreachable", { details: error.message, cause: error });
}

function kindOf(code: number | undefined, text: string): RpcFailureKind {
  if (code === undefined || connectionCodes.has(code)) return "connection";
  if (isRateLimited(code, text) || fullPool.test(text)) return "unreached";
  const found = wordings.find(([, pattern]) => pattern.test(text));
  if (found !== undefined) return found[0];
  if (outOfTime.test(text)) return "connection";
  if (unsupportedCodes.has(code)) return "unsupported";
  return code === limitExceededCode ? "range-refused" : "refused";
}

function isRateLimited(code: number | undefined, text: string): boolean {
  return code === rateLimitedCode || rateLimited.test(text);
}

/** The code and the message of an error. */
function readError(error: unknown): { readonly code: number | undefined; readonly message: string } {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }; // Any value's fields, checked below.
  const text = typeof message === "string" ? message : String(error);
  return { code: typeof code === "number" ? code : undefined, message: text.slice(0, messageCharactersMax) };
}
