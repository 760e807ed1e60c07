/** Maximum gas of a block, and so of one transaction: 2^30. */
export const BLOCK_GAS_LIMIT_DEFAULT = 1_073_741_824n;

/** Maximum gas that a call or an estimate may use, and the gas that it gets when the caller names none. */
export const CALL_GAS_MAX_DEFAULT = 536_870_912n;

/** Longest time that a call, an estimate or a search for logs over several blocks may run, in milliseconds. Blocks wait while a request of the owner runs. */
export const CALL_TIME_MS_MAX_DEFAULT = 1_000;

/** Largest signed transaction that the chain accepts, in bytes. */
export const TRANSACTION_BYTES_MAX_DEFAULT = 4_194_304;

/** Price of gas in wei, the same in every block. Not zero, because tools treat a base fee of 0 as "no base fee". */
export const BASE_FEE_PER_GAS = 7n;

/** Balance in wei of each account funded at genesis: 2^200, which a signer cannot spend on gas in the life of a chain. */
export const GENESIS_BALANCE = 2n ** 200n;

/** Maximum number of transactions that wait in the pool, over all senders. */
export const POOL_TRANSACTIONS_MAX = 4_096;

/** Maximum number of bytes of transactions that wait in the pool. */
export const POOL_BYTES_MAX = 134_217_728;

/** Maximum number of transactions of one sender that may wait behind a missing nonce. */
export const POOL_GAP_TRANSACTIONS_MAX = 64;

/** A replacement of a waiting transaction pays at least this much more, in percent. */
export const POOL_REPLACEMENT_PERCENT = 10n;

/** Maximum number of transactions in one block. */
export const BLOCK_TRANSACTIONS_MAX = 4_096;

/** Blocks before the newest whose state stays readable. Their states are only in memory, so a new process has none of them. */
export const STATE_HISTORY_BLOCKS_MAX = 128;

/** Maximum number of bytes of overwritten trie nodes kept to read past states; blocks with a thousand topics reach this before 128 blocks. */
export const STATE_HISTORY_BYTES_MAX = 16_777_216;

/** Maximum number of recently read blocks kept decoded in memory. */
export const BLOCK_CACHE_BLOCKS_MAX = 128;

/** Maximum number of bytes of transactions and logs in the recently read blocks kept in memory. */
export const BLOCK_CACHE_BYTES_MAX = 8_388_608;

/** Maximum number of bytes of trie nodes kept in memory. */
export const NODE_CACHE_BYTES_MAX = 20_971_520;

/** Values of storage slots kept in memory, some 180 bytes each. */
export const SLOT_CACHE_SLOTS_MAX = 32_768;

/** Hashes of short inputs (addresses, slots, keys of maps, topics of logs) that a thread remembers, some 170 bytes each. */
export const REMEMBERED_HASHES_MAX = 65_536;

/** Contracts whose code is kept in memory. */
export const CODE_CACHE_CONTRACTS_MAX = 256;

/** Contracts whose code the chain's own interpreter keeps analysed. */
export const PROGRAM_CACHE_CONTRACTS_MAX = 32;

/** EthereumJS repeats one in this many of the transactions that the chain's own code runs, and the chain compares the results. */
export const CHECK_INTERVAL_DEFAULT = 1_000;

/** Maximum number of logs that one `eth_getLogs` answers; one block may have more. */
export const LOGS_ANSWER_LOGS_MAX = 10_000;

/** Maximum number of bytes of log data that one `eth_getLogs` answers; one block may have more. As text, they fit into READER_ANSWER_BYTES_MAX. */
export const LOGS_ANSWER_BYTES_MAX = 8_388_608;

/** Maximum number of bytes of the blocks that the owner gets in one answer; one block may have more. */
export const BLOCKS_ANSWER_BYTES_MAX = 4_194_304;

/**
 * Maximum number of transactions that one `eth_getLogs` with an address or a first topic searches: more than it can read in its time. Their places in the index
 * would fill the memory of the reader's thread, and V8 ends the whole process when a thread's memory has no room for one large object.
 */
export const LOGS_SEARCH_TRANSACTIONS_MAX = 100_000;

/** Maximum number of bytes of the code that a call puts in place of an account's. */
export const OVERRIDE_CODE_BYTES_MAX = 262_144;

/** Maximum number of addresses, or alternatives of one topic, in a log filter. */
export const LOG_FILTER_ALTERNATIVES_MAX = 1_000;

/**
 * Bytes of blocks after which one step ends. The check for damage, the check of the index of hashes and logs, and an answer with the transactions or receipts
 * of a block consist of such steps. New blocks wait for a step.
 */
export const CHECKED_BYTES_MAX = 262_144;

/** Maximum number of blocks that one step of the check for damage reads. */
export const CHECKED_BLOCKS_MAX = 16;

/** Maximum number of nodes and codes of the state that one step of the check for damage reads, in about 5 ms; new blocks wait for that step. */
export const CHECKED_NODES_MAX = 256;

/** Maximum number of blocks in one `eth_feeHistory`. */
export const FEE_HISTORY_BLOCKS_MAX = 1_024;

/** Maximum number of reward percentiles in one `eth_feeHistory`. */
export const FEE_HISTORY_PERCENTILES_MAX = 100;

/** Maximum number of storage keys in one `eth_getProof`. */
export const PROOF_KEYS_MAX = 1_024;

/** Maximum number of polling filters (`eth_newFilter` and its family); a further one replaces the least recently used one. */
export const FILTERS_MAX = 1_024;

/** Maximum number of subscriptions (`eth_subscribe`). */
export const SUBSCRIPTIONS_MAX = 1_024;

/**
 * Length of the write-ahead log, in bytes, at which the chain copies it into the database. It does so after it announces a block, and in a check that rebuilds
 * the index of hashes and logs.
 */
export const LOG_BYTES_MAX = 8_388_608;

/** Longest time between a write of the head file and its sync, in milliseconds. */
export const HEAD_SYNC_INTERVAL_MS = 1_000;

/**
 * Bytes of state nodes and index entries that wait outside their tables. At this number, the chain writes them into their tables before the next block. A chain
 * that starts reads the waiting ones.
 */
export const UNSAVED_BYTES_MAX_DEFAULT = 8_388_608;

/** Wait before a block that could not be written is tried again, in milliseconds. */
export const COMMIT_RETRY_MS = 1_000;

/** How long opening, reading or writing the file waits for another program that has it locked, in milliseconds. */
export const BUSY_TIME_MS_MAX = 1_000;

/** How long a chain that stops waits for the block in progress, in milliseconds. Then its thread ends, after any call of SQLite in progress. */
export const STOP_TIME_MS_MAX_DEFAULT = 5_000;

/** How long a process that exits waits for the calls of SQLite in its threads to return, in milliseconds: for all of them together. */
export const EXIT_WAIT_MS_MAX = 2_000;

/** Maximum gas of a call or an estimate in the reader, which serves anyone. A caller who asks for more gas gets this much. */
export const READER_CALL_GAS_MAX_DEFAULT = 50_000_000n;

/**
 * After its time is up, a request of the reader has this long to end by itself, in milliseconds. Then its thread ends, after any call of SQLite in progress.
 */
export const READER_GRACE_MS_MAX = 100;

/** Maximum number of requests that wait in the reader; further ones are refused. */
export const READER_REQUESTS_MAX = 1_024;

/** Shortest time between two starts of the reader's thread, in milliseconds. */
export const READER_START_INTERVAL_MS = 1_000;

/** How long the thread of a reader may take to start, in milliseconds. */
export const READER_START_TIME_MS_MAX = 30_000;

/** After its requests have taken this long in total, in milliseconds, the reader pauses for the same time, even if the requests took much longer. */
export const READER_PAUSE_AFTER_MS = 50;

/** Longest answer of the reader as JSON text, in bytes. */
export const READER_ANSWER_BYTES_MAX = 25_000_000;

/** Memory for old objects in the reader's thread, in MiB; the thread ends when they need more. */
export const READER_OLD_MEBIBYTES_MAX = 128;

/** Memory for young objects in the reader's thread, in MiB. */
export const READER_YOUNG_MEBIBYTES_MAX = 24;

/** Accounts that a view of one state remembers, so that a block reads each once. */
export const STATE_VIEW_ACCOUNTS_MAX = 1_024;

/** Memory for young objects in the worker, in MiB: a quarter of Node's default. The worker is as fast and takes 24 MiB less memory. */
export const WORKER_YOUNG_MEBIBYTES_MAX = 12;

/** When the clock is set forward by more than this, in milliseconds, the times of blocks do not follow at once. */
export const BLOCK_TIME_STEP_MS_MAX = 3_600_000;

/** How long a large step of the clock forward must last before the times of blocks follow it, in milliseconds. */
export const BLOCK_TIME_STEP_WAIT_MS = 600_000;
