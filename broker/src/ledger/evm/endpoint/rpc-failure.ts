import { BrokerError } from "@stele/wire";
import { isBeforeConnection } from "../../../lib/network-failure.ts";
import { EndpointError, type Reach } from "./endpoint-error.ts";

/** What an endpoint's failure means for us. This file alone knows the words and codes of nodes and of viem. */
export type RpcFailureKind =
  /** The endpoint was not reached, or did not answer: whether it did what was asked is unknown. */
  | "connection"
  /** Surely nobody took the request: no connection could be made, or it was turned away for its rate. */
  | "unreached"
  | "already-known"
  | "nonce-too-low"
  /** Another transaction with the same nonce waits there. */
  | "replacement-underpriced"
  | "underpriced"
  /** Nonces before its own are missing there. */
  | "nonce-too-high"
  /** It asks for less gas than any transaction of its kind takes. */
  | "gas-too-low"
  /** It is larger, or asks for more gas, than is taken. */
  | "too-large"
  | "insufficient-funds"
  /** Too many blocks or logs at once. */
  | "range-refused"
  | "unsupported"
  | "refused";

/** A failed request to the chain's endpoint, recognised. */
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
    /oversized data|exceeds.*(block|transaction|tx)[- ]?gas ?(limit|cap)|gas limit too high|intrinsic gas too high|(transaction|tx) (is )?too (large|big)|payload too large|entity too large|max(imum)? (tx|transaction) size/i,
  ],
  ["gas-too-low", /intrinsic gas (is )?(too low|exceeds)|floor data gas/i],
  ["nonce-too-high", /nonce (is )?too high|nonce gap|futurenonce/i],
  ["already-known", /already known|already imported|known transaction|already in mempool|alreadyknown/i],
  ["nonce-too-low", /nonce too low|nonce is too low|oldnonce|invalid nonce; got|nonce.*already been used/i],
  [
    "replacement-underpriced",
    /replacement transaction underpriced|replacement.*(underpriced|too low)|could not replace/i,
  ],
  ["underpriced", /underpriced|max fee per gas less than block base fee|fee cap|gas price.*(too low|below)|feetoolow/i],
  ["insufficient-funds", /insufficient (funds|balance)|upfront cost exceeds|up-front cost/i],
  [
    "range-refused",
    /block range|range (is )?too|too many (blocks|logs|results)|more than \d+ (results|logs|blocks)|response size|limit exceeded|exceed.*(limit|range)|query timeout/i,
  ],
];

/** What hosted endpoints say to whoever asks too often, and nodes whose pool is full; nothing was done then. */
const rateLimited =
  /rate.?limit|too many requests|pool is full|request count exceeded|compute units per second|exceeded.*(capacity|quota)/i;
/** What nodes and balancers say when they gave up waiting for what goes on behind them. */
const outOfTime = /timed[ -]?out|time-?out|deadline exceeded/i;
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
/** Causes of an error that are looked at. */
const causesMax = 5;
/** Characters kept of each message: viem puts whole requests into them. */
const messageCharactersMax = 300;

/** Recognises whatever a provider threw. */
export function toRpcFailure(error: unknown): RpcFailure {
  if (error instanceof RpcFailure) return error;
  if (error instanceof EndpointError) return new RpcFailure(kindByReach[error.reach], error.message, { cause: error });
  const chain = causes(error);
  const code = chain.map((cause) => cause.code).find((value) => typeof value === "number");
  const text = chain.map((cause) => cause.message).join("; ");
  const isUnreached = code === undefined && chain.some(({ error }) => isBeforeConnection(error));
  return new RpcFailure(isUnreached ? "unreached" : kindOf(code, text), text, { cause: error });
}

/** Whether the endpoint gave no answer; what it answered stands, this does not. */
export function isUnanswered({ kind }: RpcFailure): boolean {
  return kind === "connection" || kind === "unreached";
}

/** What the ledger's caller is told of it. */
export function toBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  const failure = toRpcFailure(error);
  if (isUnanswered(failure)) {
    const details = failure.cause instanceof EndpointError ? { details: failure.message } : {};
    return new BrokerError("chainUnreachable", { ...details, cause: failure });
  }
  const hints = failure.kind === "insufficient-funds" ? ["Give the signer's account a balance on this chain."] : [];
  return new BrokerError("transactionFailed", { details: failure.kind, hints, cause: failure });
}

function kindOf(code: number | undefined, text: string): RpcFailureKind {
  if (code === undefined || connectionCodes.has(code)) return "connection";
  if (code === rateLimitedCode || rateLimited.test(text)) return "unreached";
  const found = wordings.find(([, pattern]) => pattern.test(text));
  if (found !== undefined) return found[0];
  if (outOfTime.test(text)) return "connection";
  if (unsupportedCodes.has(code)) return "unsupported";
  return code === limitExceededCode ? "range-refused" : "refused";
}

/** The error and what caused it; viem nests the endpoint's own error. */
function causes(error: unknown): { readonly error: unknown; readonly code: unknown; readonly message: string }[] {
  const chain: { error: unknown; code: unknown; message: string }[] = [];
  let current: unknown = error;
  while (typeof current === "object" && current !== null && chain.length < causesMax) {
    const { code, message, cause } = current as { code?: unknown; message?: unknown; cause?: unknown }; // Any error's fields, checked below.
    chain.push({
      error: current,
      code,
      message: typeof message === "string" ? message.slice(0, messageCharactersMax) : "",
    });
    current = cause;
  }
  return chain.length === 0 ? [{ error, code: undefined, message: String(error) }] : chain;
}
