import { BrokerError } from "@stele/wire";

/** What an endpoint's failure means for us. This file alone knows the words and codes of nodes and of viem. */
export type RpcFailureKind =
  /** The endpoint was not reached, or did not answer: whether it did what was asked is unknown. */
  | "connection"
  | "already-known"
  | "nonce-too-low"
  /** Another transaction with the same nonce waits there. */
  | "replacement-underpriced"
  | "underpriced"
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

const unsupportedCodes: ReadonlySet<unknown> = new Set([-32601, -32004, 4200]);
const connectionCodes: ReadonlySet<unknown> = new Set([4900, 4901]);
const limitExceededCode = -32005;
/** Causes of an error that are looked at. */
const causesMax = 5;
/** Characters kept of each message: viem puts whole requests into them. */
const messageCharactersMax = 300;

/** Recognises whatever a provider threw. */
export function toRpcFailure(error: unknown): RpcFailure {
  if (error instanceof RpcFailure) return error;
  const chain = causes(error);
  const code = chain.map((cause) => cause.code).find((value) => typeof value === "number");
  const text = chain.map((cause) => cause.message).join("; ");
  return new RpcFailure(kindOf(code, text), text, { cause: error });
}

/** What the ledger's caller is told of it. */
export function toBrokerError(error: unknown): BrokerError {
  if (error instanceof BrokerError) return error;
  const failure = toRpcFailure(error);
  if (failure.kind === "connection") return new BrokerError("chainUnreachable", { cause: failure });
  const hints = failure.kind === "insufficient-funds" ? ["Give the signer's account a balance on this chain."] : [];
  return new BrokerError("transactionFailed", { details: failure.kind, hints, cause: failure });
}

function kindOf(code: number | undefined, text: string): RpcFailureKind {
  if (code === undefined || connectionCodes.has(code)) return "connection";
  const found = wordings.find(([, pattern]) => pattern.test(text));
  if (found !== undefined) return found[0];
  if (unsupportedCodes.has(code)) return "unsupported";
  return code === limitExceededCode ? "range-refused" : "refused";
}

/** The error and what caused it; viem nests the endpoint's own error. */
function causes(error: unknown): { readonly code: unknown; readonly message: string }[] {
  const chain: { code: unknown; message: string }[] = [];
  let current: unknown = error;
  while (typeof current === "object" && current !== null && chain.length < causesMax) {
    const { code, message, cause } = current as { code?: unknown; message?: unknown; cause?: unknown }; // Any error's fields, checked below.
    chain.push({ code, message: typeof message === "string" ? message.slice(0, messageCharactersMax) : "" });
    current = cause;
  }
  return chain.length === 0 ? [{ code: undefined, message: String(error) }] : chain;
}
