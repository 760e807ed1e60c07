/** Longest query string of a GET, in bytes. */
export const getQueryBytesMax = 1024;

/** Maximum size of request line and headers together, in bytes; it also bounds the query of a POST. Past it the answer is 431. */
export const headerBytesMax = 32 * 1024;

/** Headers of one request. A short header takes 40 times the memory of its text, for as long as its request, its tail or its WebSocket lasts. Past it, 431. */
export const headersMax = 256;

/** Connections open at once; further ones are refused until one closes. */
export const connectionsMax = 20_000;

/** Connections that wait to be accepted at one port, if the system allows as many. Past the limit, clients retry after 1, 3 and 7 s. */
export const connectionsWaitingMax = 4096;

/** How long a client may take to send its headers. */
export const headersTimeoutMs = 10_000;

/** How long a client may take to send its whole request. */
export const requestTimeoutMs = 30_000;

/** How often connections are checked against `headersTimeoutMs` and `requestTimeoutMs`. */
export const timeoutCheckIntervalMs = 1000;

/** How long an idle connection is kept; longer than the 60 s at which common proxies give up. */
export const keepAliveTimeoutMs = 65_000;

/** How long requests in progress may take when the server closes. */
export const closeDeadlineDefaultMs = 10_000;

/** How long a client may take to send its headers when the server closes. */
export const closeHeadersTimeoutMs = 1_000;

/** How often a closing server closes idle connections. */
export const closePollIntervalMs = 20;

/** Members of one JSON-RPC batch. */
export const rpcBatchMax = 1000;

/** CloudEvents of one request. Any chain takes that many in one transaction, and parsing them takes 15 ms. */
export const cloudEventBatchMax = 1000;

/**
 * Members of one JSON-RPC batch that run at once. A batch of up to {@link rpcWholeBytesMax} runs all its publishes at once while fewer than
 * {@link rpcRunningMax} members run.
 */
export const rpcBatchRunningMax = 256;

/** Longest JSON-RPC batch whose publishes run all at once, in bytes: longer ones would fill the queue of publishes (64 MiB). */
export const rpcWholeBytesMax = 2 ** 20;

/**
 * Running members of all JSON-RPC batches of an endpoint. While more run, each batch runs at most {@link rpcBatchRunningMax} at once. While fewer run, a batch
 * runs all its publishes, since one large transaction costs less than several. 4096 would take another 20 MiB with 20,000 topics, and save 3 % of processor
 * time.
 */
export const rpcRunningMax = 2048;

/** Answer to one JSON-RPC batch of operations, in bytes; members beyond it are answered 200300. */
export const rpcAnswerBytesMax = 8 * 2 ** 20;

/** A batch member's result up to this size, in bytes, is always part of the answer. The results of all operations that change something are shorter. */
export const rpcShortResultBytesMax = 1024;

/** A batch member's error up to this size, in bytes, is always part of the answer. Only errors that contain the data of a revert are longer. */
export const rpcShortErrorBytesMax = 4096;

/** How long one batch may start members before the event loop and other batches have their turn. */
export const rpcSliceMs = 5;

/** Concurrent calls that read events or lists, over all connections. */
export const readsRunningMax = 16;

/** Concurrent calls for proofs, over all connections. */
export const proofsRunningMax = 4;

/**
 * Concurrent calls of the admin API that no other limit counts: searches, views of one object, blocks, skipped entries, role changes and most orders.
 */
export const searchesRunningMax = 8;

/** Concurrent orders in the admin API that wait for receivers: `test`, `redeliver`, and `change` to a new url. */
export const receiverOrdersRunningMax = 8;

/** How long the broker may start waiting calls, one after the other, before the event loop has its turn. */
export const turnsSliceMs = 5;

/** How long a call waits for its turn, in milliseconds; then it fails with 200300. */
export const turnTimeoutMs = 30_000;

/** Values of one JSON body: members, elements, and the objects and arrays that hold them. A value may take 50 times the memory of its text. */
export const jsonValuesMax = 100_000;

/**
 * Different names among the members of one JSON body, not counting its first `jsonNamesMax` members. A new name takes 50 times as long to parse as
 * a repeated one.
 */
export const jsonNamesMax = 2000;

/** Nesting levels of one JSON body. */
export const jsonDepthMax = 64;

/** Bytes counted for each value of a long JSON body while its request runs, in addition to the body. */
export const jsonValueBytes = 64;

/** Parameters of one REST request. */
export const parametersMax = 10_000;

/** Bodies and answers up to this length do not count against the memory for bodies and answers in flight, except answers that wait behind earlier ones. */
export const smallBytesMax = 16 * 1024;

/** Answers that are longer are written in slices of this length, each after the client has read the slice before it. */
export const answerSliceBytes = 256 * 1024;

/** How long a client may read nothing of its answer, or send nothing of a long body, before the server ends its connection. */
export const progressTimeoutMs = 10_000;

/** Bytes a second that keep a connection alive; at half this rate the server ends it after twice `progressTimeoutMs`. */
export const progressBytesPerSecondMin = 32 * 1024;

/** When memory runs out, a client that moved bytes within this time keeps its connection, and the request that needs memory is refused. */
export const paceGraceMs = 1000;

/** How often connections are checked against `progressTimeoutMs` and `progressBytesPerSecondMin`. */
export const progressCheckIntervalMs = 500;

/** Chunks of one body that are shorter than `shortChunkBytes`; a body with more is refused. */
export const shortChunksMax = 4096;

/** Handling a chunk of a body costs as much as handling this many bytes. */
export const shortChunkBytes = 64;

/** Chunks of a WebSocket frame that wait for its end; a frame with more ends its connection with 1008. For long messages, see `webSocketPartBytes`. */
export const webSocketChunksMax = 8_192;

/** Fragments of a WebSocket message; a message with more ends its connection with 1008. For long messages, see `webSocketPartBytes`. */
export const webSocketFragmentsMax = 1_024;

/** A message may have a chunk and a fragment for each part of this many bytes, if the two limits above allow fewer. */
export const webSocketPartBytes = 1_024;

/** Memory of a chunk that waits for the end of its frame, besides its bytes. */
export const webSocketChunkBytes = 256;

/** Requests of one connection that run while an earlier one has no answer; further ones wait. */
export const pipelinedRunningMax = 16;

/** Pipelined requests of one connection that wait; one more ends the connection. */
export const pipelinedWaitingMax = 256;

/** Bytes counted for a pipelined request while it waits. */
export const pipelinedRequestBytes = 4096;

/** Concurrent look-ups of the chain over HTTP. */
export const chainLookUpsRunningMax = 16;

/**
 * Concurrent calls of the chain over HTTP that run code or search blocks, such as `eth_call` and `eth_getLogs`. Each may run for
 * `CALL_TIME_MS_MAX_DEFAULT`.
 */
export const chainComputationsRunningMax = 1;

/** After a computation of the chain of at least this length, the next one waits for the same time, so that look-ups and publishing get their share. */
export const chainPauseFromMs = 50;

/** Look-ups of the chain that wait, and as many computations that wait; further ones are answered -32005. */
export const chainCallsWaitingMax = 2048;

/** How long a call of the chain may wait. A call whose turn comes later is answered -32005. */
export const chainWaitTimeoutMs = 10_000;

/** Answer to one request or batch of the chain over HTTP, in bytes; a call that would exceed it is answered -32003. */
export const chainAnswerBytesMax = 25_000_000;

/** Characters of one path parameter: the longest topic name with every character percent-encoded. */
export const pathParameterCharactersMax = 768;
