import { type EmbeddedChain, startEmbeddedChain, TRANSACTION_BYTES_MAX_DEFAULT } from "@stele/chain";
import { databaseAddress } from "./compose-database.ts";
import { createLedgers } from "./compose-groups.ts";
import { embeddedKey } from "./compose-signer.ts";
import { addressOfNode, groupsOf, isClustered, listensOnLoopbackOnly } from "./config/derived.ts";
import type { Secrets } from "./config/load-config.ts";
import type { Config } from "./config/settings.ts";
import { parseGroupId } from "./domain/group-id.ts";
import type { GroupHealth } from "./engine/broker.ts";
import { type ClusterOptions, createBroker, type RunningBroker } from "./engine/create-broker.ts";
import { defaultEngineLimits, type EngineLimits } from "./engine/limits.ts";
import { createHttpServer, type HttpServer } from "./gateway/http-server.ts";
import { keccak256, Signer } from "./ledger/evm/native-crypto.ts";
import { Closers } from "./lib/closers.ts";
import { createDeferred } from "./lib/deferred.ts";
import type { Logger } from "./lib/logger.ts";
import { createSystemClock } from "./lib/system/clock.ts";
import { type DataFolder, openDataFolder } from "./lib/system/data-folder.ts";
import { createSystemRandomness } from "./lib/system/randomness.ts";
import type { GroupRecords } from "./ports/group-records.ts";
import type { Journal } from "./ports/journal.ts";
import type { Ledger } from "./ports/ledger.ts";
import type { Sink } from "./ports/sink.ts";
import type { Store } from "./ports/store.ts";
import { EventPlaces } from "./sink/event-places.ts";
import { createWebhookSink } from "./sink/webhook/webhook-sink.ts";
import { createMemoryStore } from "./store/memory/memory-store.ts";
import { createPostgresCoordinator } from "./store/sql/postgres/coordination/postgres-coordinator.ts";
import { createPostgresStore } from "./store/sql/postgres/postgres-store.ts";
import { createSqlStore } from "./store/sql/sql-store.ts";
import { createMetrics, type MetricsRegistry } from "./telemetry/metrics.ts";
import { version } from "./version.ts";

/** A broker that serves. */
export interface RunningServer {
  /** Base URL, context segment included. */
  readonly url: string;
  /** How each group is at this moment. */
  health(): readonly GroupHealth[];
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  /** Settles when a part has ended that the broker cannot go on without: blocks cannot be written, or the chain is gone. */
  readonly failure: Promise<Error>;
  /** Stops accepting, finishes what is under way within the configured deadline, writes the cursors and closes. */
  stop(): Promise<void>;
}

const clock = createSystemClock();
const randomness = createSystemRandomness();

/** How long a broker whose start has failed takes to stop in order what had started. */
const failedStartGraceMs = 1_000;
/** What a node among others keeps of the time of its stop for handing over and leaving, at most. */
const leavingMsMax = 2_000;

/**
 * Builds the graph and starts it, from the data folder up to the listening port. What was started is stopped again when a part fails, or
 * when `signal` aborts before all of it has started.
 * @throws Error whose message says which part failed and what to do; the reason of `signal`.
 */
export async function startServer(config: Config, options: ServerOptions): Promise<RunningServer> {
  const { logger, signal } = options;
  const closers = new Closers();
  try {
    return await start(config, { ...options, closers });
  } catch (error) {
    const closed = closers.closeAll();
    if (signal?.aborted === true && error === signal.reason) await closed;
    // What failed first is what the operator has to know.
    else await closed.catch((failure: unknown) => logger.error("stopping failed", { error: failure }));
    throw error;
  }
}

export interface ServerOptions {
  readonly logger: Logger;
  /** What the environment holds for the signers of groups. */
  readonly secrets: Secrets;
  /** Ends a start that is under way; afterwards it does nothing. */
  readonly signal?: AbortSignal | undefined;
}

interface Surroundings extends ServerOptions {
  readonly closers: Closers;
}

async function start(config: Config, { logger, secrets, signal, closers }: Surroundings): Promise<RunningServer> {
  const folder = openDataFolder(config.dataDir);
  closers.add(() => folder.release());
  const failure = createDeferred<Error>();
  const groups = groupsOf(config);
  const embedded = groups.some(({ endpoints }) => endpoints === "embedded")
    ? await startEmbedded(config, { folder, closers, onFailure: failure.resolve })
    : undefined;
  signal?.throwIfAborted();
  const { store, cluster } = createSharing(config, { folder, logger, closers, onFailure: failure.resolve });
  const sink = createSink(config);
  closers.add(() => sink.stop());
  const metrics = createMetrics();
  const ledgers = await createLedgers(groups, {
    folder,
    secrets,
    clock,
    logger,
    closers,
    embedded,
    store,
    isRemembered: config.coordination !== "none",
  });
  const broker = createEngine(config, { ledgers, store, sink, metrics, logger, cluster });
  let stopBy: number | undefined;
  const unstartedGraceMs = (): number => (signal?.aborted === true ? config.shutdownDeadlineMs : failedStartGraceMs);
  closers.add(() => broker.stop(stopBy === undefined ? unstartedGraceMs() : Math.max(0, stopBy - clock.now())));
  signal?.throwIfAborted();
  await Promise.race([broker.start(), failure.promise.then(throwIt), untilEnded(signal)]);
  const server = createServer(config, { broker, chain: embedded?.chain, metrics, logger });
  closers.add(() => server.close());
  const url = await listen(server, config);
  signal?.throwIfAborted();
  const stop = (): Promise<void> => {
    stopBy = clock.now() + config.shutdownDelayMs + config.shutdownDeadlineMs;
    return closers.closeAll();
  };
  return { url, health: () => broker.health(), dataDir: folder.path("."), failure: failure.promise, stop };
}

async function listen(server: HttpServer, { host, port }: Config): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "EADDRINUSE")) throw cause;
    const message = `Port ${port} of ${host} is taken: end what listens there, or choose another one by --port or STELE_PORT.`;
    throw new Error(message, { cause });
  }
}

/** Never resolves. @throws the reason of `signal`. */
function untilEnded(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

function throwIt(error: Error): never {
  throw error;
}

/** Takes the failure of a part that the broker cannot go on without; only the first counts. */
type FailureListener = (failure: Error) => void;

function watchChain(
  chain: EmbeddedChain,
  options: { readonly file: string; readonly onFailure: FailureListener },
): void {
  const { file, onFailure } = options;
  chain.on("fault", (cause) => {
    if (cause === undefined) return;
    const message = `chain ${file} cannot be written: ${cause.message}; check the disk and its free space, then start again`;
    onFailure(new Error(message, { cause }));
  });
  chain.on("disconnect", onFailure);
}

interface EmbeddedParts {
  readonly folder: DataFolder;
  readonly closers: Closers;
  readonly onFailure: FailureListener;
}

async function startEmbedded(config: Config, { folder, closers, onFailure }: EmbeddedParts) {
  const file = folder.path("chain.sqlite");
  const privateKey = embeddedKey(folder);
  const chain = await startEmbeddedChain({
    file,
    chainId: config.chainId,
    genesisAccounts: [new Signer(privateKey).address],
    transactionBytesMax: Math.max(TRANSACTION_BYTES_MAX_DEFAULT, transactionBytes(config)),
  });
  closers.add(() => chain.stop());
  watchChain(chain, { file, onFailure });
  return { chain, privateKey };
}

/** Room for the longest transaction that the settings allow, with what the contract's interface adds to each batch and event. */
function transactionBytes(config: Config): number {
  const eventBytesMax = config.contentBytesMax + config.extensionsBytesMax;
  const embedded = groupsOf(config).find(({ endpoints }) => endpoints === "embedded");
  return 2 * Math.max(embedded?.transactionBytesMax ?? 0, eventBytesMax);
}

interface StoreParts extends EmbeddedParts {
  readonly logger: Logger;
}

interface Sharing {
  readonly store: Store & Journal & GroupRecords;
  /** What other nodes share beside the store; undefined where there are none. */
  readonly cluster: ClusterOptions | undefined;
}

function createSharing(config: Config, parts: StoreParts): Sharing {
  const { folder, logger, onFailure: onFault } = parts;
  if (isClustered(config)) return createShared(config, parts);
  if (config.coordination === "none") return { store: createMemoryStore(), cluster: undefined };
  return { store: createSqlStore({ file: folder.path("store.sqlite"), logger, onFault }), cluster: undefined };
}

function createShared(config: Config, { logger, closers }: StoreParts): Sharing {
  const url = databaseAddress(config, logger);
  const store = createPostgresStore({ url, logger, connectionsMax: config.databaseConnectionsMax });
  const coordinator = createPostgresCoordinator({ url, logger });
  closers.add(() => coordinator.stop());
  return { store, cluster: { coordinator, address: addressOfNode(config), records: store } };
}

function createSink(config: Config): Sink {
  return createWebhookSink({
    clock,
    version,
    allowNetworks: config.callbackAllow,
    allowLoopback: listensOnLoopbackOnly(config),
    timeoutMs: config.callbackTimeoutMs,
    connectionsMax: config.callbackConnectionsMax,
    ...(config.notificationPlace === "on"
      ? { places: new EventPlaces({ prefix: config.extensionPrefix, keccak: keccak256 }) }
      : {}),
  });
}

interface EngineParts {
  readonly ledgers: readonly Ledger[];
  readonly store: Store;
  readonly sink: Sink;
  readonly metrics: MetricsRegistry;
  readonly logger: Logger;
  readonly cluster: ClusterOptions | undefined;
}

function createEngine(config: Config, parts: EngineParts): RunningBroker {
  return createBroker({
    ...parts,
    clock,
    randomness,
    limits: toEngineLimits(config),
    defaultGroupId: parseGroupId(config.defaultGroup),
    extensionPrefix: config.extensionPrefix,
    hasCoordinator: config.coordination !== "none",
  });
}

function toEngineLimits(config: Config): EngineLimits {
  return {
    ...defaultEngineLimits,
    contentBytesMax: config.contentBytesMax,
    extensionsBytesMax: config.extensionsBytesMax,
    publishesWaitingMax: config.publishesWaitingMax,
    retryDelayMsMin: config.callbackBackoffMinMs,
    retryDelayMsMax: config.callbackBackoffMaxMs,
    giveUpAfterMs: config.callbackGiveUpAfterMs,
    membershipMs: config.takeOverAfterMs,
  };
}

interface ServerParts {
  readonly broker: RunningBroker;
  readonly chain: EmbeddedChain | undefined;
  readonly metrics: MetricsRegistry;
  readonly logger: Logger;
}

function createServer(config: Config, { chain, ...parts }: ServerParts): HttpServer {
  return createHttpServer({
    ...parts,
    chain: config.chainEndpoint === "on" ? chain : undefined,
    version,
    defaultGroup: config.defaultGroup,
    basePath: config.basePath,
    extensionPrefix: config.extensionPrefix,
    bodyBytesMax: config.requestBodyBytesMax,
    memoryInFlightBytesMax: config.memoryInFlightBytesMax,
    advertisedAddress: config.advertisedAddress,
    closeDelayMs: config.shutdownDelayMs,
    closeDeadlineMs: config.shutdownDeadlineMs - leavingMs(config),
  });
}

function leavingMs(config: Config): number {
  return isClustered(config) ? Math.min(leavingMsMax, config.shutdownDeadlineMs / 2) : 0;
}
