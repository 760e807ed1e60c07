/** Longest query string of a GET, in bytes (INTERFACE.md, Limits). */
export const getQueryBytesMax = 1024;

/** Longest request line and headers together; with it the longest query of a POST. Node answers 431 beyond. */
export const headerBytesMax = 32 * 1024;

/** Connections open at once; further ones are refused until one closes. */
export const connectionsMax = 20_000;

/** How long a client may take for its headers. */
export const headersTimeoutMs = 10_000;

/** How long a client may take for its whole request. */
export const requestTimeoutMs = 30_000;

/** How often connections are checked against the two timeouts above. */
export const timeoutCheckIntervalMs = 1000;

/** How long an idle connection is kept; longer than the 60 s at which common proxies give up. */
export const keepAliveTimeoutMs = 65_000;

/** How long requests under way may take when the server closes. */
export const closeDeadlineDefaultMs = 10_000;

/** How often connections that have become idle are closed while the server closes. */
export const closePollIntervalMs = 20;

/** Members of one JSON-RPC batch. */
export const rpcBatchMax = 1000;

/** Members of one JSON-RPC batch that run at once. */
export const rpcBatchRunningMax = 256;

/** Look-ups of the chain over HTTP that run at once. */
export const chainLookUpsRunningMax = 16;

/**
 * Calls of the chain over HTTP that run code or search blocks, such as `eth_call` and `eth_getLogs`, at once. Each may run for
 * `CALL_TIME_MS_MAX_DEFAULT`.
 */
export const chainComputationsRunningMax = 1;

/** A computation of at least this length is followed by a pause as long as itself, in which publishing has the processor. */
export const chainPauseFromMs = 50;

/** Look-ups that wait, and computations that wait; further ones are answered -32005. */
export const chainCallsWaitingMax = 2048;

/** How long one of them waits before it is answered -32005, told when a place is free. */
export const chainWaitTimeoutMs = 10_000;

/** Levels of arrays and objects in the parameters of one call of the chain; the deepest that a method takes has five. */
export const chainParamsLevelsMax = 16;

/** Answer to one request or batch of the chain over HTTP, in bytes; a call that would exceed it is answered -32003. */
export const chainAnswerBytesMax = 25_000_000;
