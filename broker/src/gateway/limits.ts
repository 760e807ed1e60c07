/** Longest query string of a GET, in bytes (INTERFACE.md, Limits). */
export const getQueryBytesMax = 1024;

/** Longest request line and headers together; with it the longest query of a POST. Node answers 431 beyond. */
export const headerBytesMax = 32 * 1024;

/** Connections open at once; further ones are refused until one closes. */
export const connectionsMax = 20_000;

/** Connections that wait to be accepted, where the system allows as many. Past it, the system makes clients try again after 1, 3 and 7 s. */
export const connectionsWaitingMax = 4096;

/** How long a client may take for its headers. */
export const headersTimeoutMs = 10_000;

/** How long a client may take for its whole request. */
export const requestTimeoutMs = 30_000;

/** How often connections are checked against the two timeouts above. */
export const timeoutCheckIntervalMs = 1000;

/** How long an idle connection is kept; longer than the 60 s at which common proxies give up. */
export const keepAliveTimeoutMs = 65_000;

/** How long requests in progress may take when the server closes. */
export const closeDeadlineDefaultMs = 10_000;

/** How often connections that have become idle are closed while the server closes. */
export const closePollIntervalMs = 20;

/** Members of one JSON-RPC batch. */
export const rpcBatchMax = 1000;

/** CloudEvents of one request. Any chain takes so many in one transaction, and to read them takes 15 ms. */
export const cloudEventBatchMax = 1000;

/** Members of one JSON-RPC batch that run at once. */
export const rpcBatchRunningMax = 256;

/** Answer to one JSON-RPC batch of operations, in bytes; members beyond it are answered 200300. */
export const rpcAnswerBytesMax = 8 * 2 ** 20;

/** Result of a member that is part of the answer however long the answer is: whatever changes something answers with less. */
export const rpcShortResultBytesMax = 1024;

/** How long one batch may start members before the event loop and other batches have their turn. */
export const rpcSliceMs = 5;

/** Calls that read events or lists, of all connections, at once. */
export const readsRunningMax = 16;

/** Proofs, of all connections, at once. */
export const proofsRunningMax = 4;

/** Calls of the admin API that search subscriptions, topics or sessions, or give other orders than those below, of all connections, at once. */
export const searchesRunningMax = 8;

/** Orders `test`, `redeliver` and `change` to a new url of the admin API, which wait for receivers, of all connections, at once. */
export const receiverOrdersRunningMax = 8;

/** How long such calls may run one after the other before the event loop has its turn. */
export const turnsSliceMs = 5;

/** How long a call waits for its turn, in milliseconds; then it fails with 200300. */
export const turnTimeoutMs = 30_000;

/** Values of one JSON body: members, elements, and the objects and arrays that hold them. A value may take 50 times the memory of its text. */
export const jsonValuesMax = 100_000;

/**
 * Members of one JSON body after which their names are compared, and different names among those that follow. A name that is new takes 50 times
 * as long to read as one that came before.
 */
export const jsonNamesMax = 2000;

/** Levels of one JSON body. */
export const jsonDepthMax = 64;

/** Memory that a value of a long JSON body counts for while its request runs, beside the bytes of the body. */
export const jsonValueBytes = 64;

/** Parameters of one REST request. */
export const parametersMax = 10_000;

/** Bodies and answers up to this length need no room in the memory for those in flight. */
export const smallBytesMax = 16 * 1024;

/** Longer answers are written to their connection in slices of this length, each when the client has taken the one before. */
export const answerSliceBytes = 256 * 1024;

/** How long a client may take nothing of its answer, or send nothing of a long body, before its connection is ended. */
export const progressTimeoutMs = 10_000;

/** Bytes a second that keep a connection alive; at half this rate the server ends it after twice `progressTimeoutMs`. */
export const progressBytesPerSecondMin = 32 * 1024;

/** When memory runs out, a client that moved bytes this recently keeps its connection, and the request for memory is refused. */
export const paceGraceMs = 1000;

/** How often connections are checked against the bounds above. */
export const progressCheckIntervalMs = 500;

/** Chunks of a body that are shorter than `shortChunkBytes`; a body in more of them is refused. */
export const shortChunksMax = 4096;

/** Handling a chunk costs as much as this many bytes. */
export const shortChunkBytes = 64;

/** Requests of one connection that run before the ones in front of them are answered; further ones wait until it is their turn. */
export const pipelinedRunningMax = 16;

/** Requests of one connection that wait behind those; one more ends the connection. */
export const pipelinedWaitingMax = 256;

/** Memory that a request counts for while it waits there. */
export const pipelinedRequestBytes = 4096;

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

/** How long one of them waits. When a place gets free later than this, its answer is -32005. */
export const chainWaitTimeoutMs = 10_000;

/** Answer to one request or batch of the chain over HTTP, in bytes; a call that would exceed it is answered -32003. */
export const chainAnswerBytesMax = 25_000_000;

/** Characters of one parameter in a path: a topic name whose characters are all encoded. */
export const pathParameterCharactersMax = 768;
