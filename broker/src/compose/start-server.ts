import { hostname, networkInterfaces } from "node:os";
import type { EmbeddedChain } from "@stele/chain";
import { cryptoInUse, keccak256 } from "@stele/eth/node";
import { checkCertificates } from "./certificates.ts";
import { createKeyOptions } from "./access.ts";
import { startAuditLog } from "./audit.ts";
import { serveBackups } from "./backup.ts";
import { databaseAddress } from "./database.ts";
import { chainFile, checkDataFolder, type FolderCheckOptions, type FolderOptions, storeFile } from "./folder.ts";
import { createLedgers } from "./groups.ts";
import { toEngineLimits } from "./limits.ts";
import { checkPlaces, closeAll, type ListenerAddress, listenAll } from "./listen.ts";
import { createListeners, placesOf } from "./listeners.ts";
import { checkBeforeEmptying, explainStart, startEmbedded } from "./own-chain.ts";
import { pauseCopy } from "./restored-copy.ts";
import { startWatches, watchFiles } from "./watches.ts";
import { loadSecretKeys } from "./secrets.ts";
import {
  addressOfNode,
  callbackOrigin,
  consentModeOf,
  type GroupConfig,
  groupsOf,
  isClustered,
  listensOnLoopbackOnly,
} from "../config/derived.ts";
import type { Secrets } from "../config/load-config.ts";
import { environmentName } from "../config/setting.ts";
import type { Config } from "../config/settings.ts";
import { parseGroupId } from "../domain/group-id.ts";
import type { GroupHealth } from "../engine/broker.ts";
import { createBroker } from "../engine/create-broker.ts";
import { type ClusterOptions, hungMsMax, type RunningBroker } from "../engine/engine-options.ts";
import { TracedSink } from "../engine/deliver/traced-sink.ts";
import type { ProcessTrouble } from "../engine/group-life.ts";
import { Deadline } from "../engine/time.ts";
import { CleanupStack } from "../lib/cleanup-stack.ts";
import { createDeferred } from "../lib/deferred.ts";
import type { Logger } from "../lib/logger.ts";
import { createSystemClock } from "../lib/system/clock.ts";
import { type DataFolder, openDataFolder } from "../lib/system/data-folder.ts";
import { NewFiles } from "../lib/system/new-files.ts";
import { lossOr, type OpenFile } from "../lib/system/open-file.ts";
import { createSystemRandomness } from "../lib/system/randomness.ts";
import type { AuditLog } from "../ports/audit-log.ts";
import type { GroupRecords } from "../ports/group-records.ts";
import type { Journal } from "../ports/journal.ts";
import type { Ledger } from "../ports/ledger.ts";
import type { SecretRows } from "../ports/secret-rows.ts";
import type { Sink } from "../ports/sink.ts";
import type { Store } from "../ports/store.ts";
import type { Tracing } from "../ports/tracing.ts";
import { EventPlaces } from "../sink/event-places.ts";
import { DnsResolver } from "../sink/webhook/lookup/dns-resolver.ts";
import { createWebhookSink } from "../sink/webhook/webhook-sink.ts";
import { createMemoryStore } from "../store/memory/memory-store.ts";
import { createSealedStore } from "../store/sealed/sealed-store.ts";
import { SecretBox } from "../store/sealed/secret-box.ts";
import type { IndexFinding } from "../store/sql/index/index-tables.ts";
import type { HeldFile } from "../store/sql/schema.ts";
import { createSqlStore, type SqlStoreOptions } from "../store/sql/sql-store.ts";
import { createMetrics, type MetricsRegistry } from "../telemetry/metrics.ts";
import { findTracing } from "../telemetry/open-telemetry.ts";
import { version } from "../version.ts";

/** A broker that serves. */
export interface RunningServer {
  /** Base URL, with the base path of the settings. */
  readonly url: string;
  /** Every listener; the first one serves HTTP. */
  readonly listeners: readonly ListenerAddress[];
  /** Returns the current state of each group. */
  health(): readonly GroupHealth[];
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  /** The given settings, but with paused deliveries if the data folder is a restored copy. */
  readonly config: Config;
  /**
   * Resolves if a part fails without which the broker cannot run: for example, if the chain cannot write blocks. With a LostFileError if the chain's or the
   * store's file is no longer at its path, whatever failed first.
   */
  readonly failure: Promise<Error>;
  /**
   * Stops accepting, finishes what is in progress within the configured deadline, writes the cursors and closes.
   * @throws LostFileError if the chain's or the store's file is no longer at its path; the first failure; Error that names a part that hangs.
   */
  stop(): Promise<void>;
}

const clock = createSystemClock();
const randomness = createSystemRandomness();

/** Time to stop cleanly after a failed start, in milliseconds. */
const failedStartGraceMs = 1_000;
/** How long the parts below the engine may take to close after the engine, in milliseconds. If one hangs, the broker no longer waits for it. */
const closingMsMax = 2_000;
/** Upper bound on shutdown time, in milliseconds, that a node of a cluster reserves for handing over and leaving. */
const leavingMsMax = 2_000;

/**
 * Builds all parts and starts them, from the data folder up to the listening port. If a part fails, or `signal` aborts before the start is complete,
 * it stops the parts that run.
 * @throws Error whose message says which part failed and what to do; the reason of `signal`.
 */
export async function startServer(config: Config, options: ServerOptions): Promise<RunningServer> {
  const { logger, signal } = options;
  const cleanup = new CleanupStack();
  try {
    return await start(config, { ...options, cleanup });
  } catch (error) {
    const closed = closeWithin(signal?.aborted === true ? config.shutdownDeadlineMs : failedStartGraceMs, cleanup);
    if (signal?.aborted === true && error === signal.reason) await closed;
    // Throws the first error, which the operator has to know, and only logs a later one.
    else await closed.catch((failure: unknown) => logger.error("stopping failed", { error: failure }));
    throw error;
  }
}

/** Closes all parts. Each keeps to the time that is left of `graceMs` by itself, unless it hangs. @throws Error that names a part that hangs. */
async function closeWithin(graceMs: number, cleanup: CleanupStack): Promise<void> {
  using hung = new Deadline(clock, graceMs + hungMsMax + closingMsMax);
  await cleanup.closeAll(hung.signal);
}

export interface ServerOptions {
  readonly logger: Logger;
  /** Values of the environment variables that the signers of groups refer to. */
  readonly secrets: Secrets;
  /** Aborts a start in progress; has no effect after the start. */
  readonly signal?: AbortSignal | undefined;
}

export interface StartContext extends ServerOptions, Pick<FolderCheckOptions, "needsData"> {
  readonly cleanup: CleanupStack;
  /** True to sign nothing, publish no will and end no session, for example on a restored folder. If left out, the folder's mark decides. */
  readonly isRestored?: boolean;
}

async function start(given: Config, context: StartContext): Promise<RunningServer> {
  const { logger, signal, cleanup } = context;
  checkCertificates(given, logger);
  await checkPlaces(placesOf(given));
  const engine = await startEngine(given, context);
  warnIfPaused(given, logger);
  const { config, broker, chain, metrics, folder } = engine;
  const closeDeadlineMs = config.shutdownDeadlineMs - leavingMs(config);
  let addresses: readonly ListenerAddress[] = [];
  const parts = { broker: broker.calls, operator: broker.operator, chain, metrics, logger, randomness };
  const endOrders = (): void => void broker.runningOrders.stop(closeDeadlineMs);
  const listeners = createListeners(config, { ...parts, closeDeadlineMs, endOrders, listeners: () => addresses });
  let delayMs = 0; // A start that fails waits for nobody.
  cleanup.add(() => closeAll(listeners, delayMs), "listeners");
  // Before the first answer: from then on, a client may rely on the data in the folder.
  engine.confirm();
  const files = engine.openFiles();
  const lost = watchFiles({ files, clock, cleanup });
  addresses = await listenAll(listeners, logger);
  serveBackups({ ...engine, logger, cleanup, clock });
  signal?.throwIfAborted();
  const stop = async (): Promise<void> => {
    delayMs = config.shutdownDelayMs;
    const graceMs = delayMs + config.shutdownDeadlineMs;
    engine.stopWithin(graceMs);
    return closeWithin(graceMs, cleanup).catch((error: unknown) => throwIt(lossOr(error, files)));
  };
  return {
    url: addresses[0]?.address ?? "",
    listeners: addresses,
    health: () => broker.groupHealth(),
    dataDir: folder.path("."),
    config,
    failure: Promise.race([engine.failure, lost]).then((error) => lossOr(error, files)),
    stop,
  };
}

/** Logs a warning if the operator's settings pause deliveries. */
function warnIfPaused({ deliveries }: Config, logger: Logger): void {
  if (deliveries !== "paused") return;
  logger.warn("deliveries paused: no callback is attempted", { setting: environmentName("deliveries") });
}

/** A started broker without listeners. */
export interface RunningEngine extends Pick<RunningServer, "config"> {
  readonly broker: RunningBroker;
  readonly chain: EmbeddedChain | undefined;
  readonly metrics: MetricsRegistry;
  readonly folder: DataFolder;
  readonly storeFile: SharedServices["storeFile"];
  /** The open files of the chain and the store, as far as they are in the folder. */
  readonly openFiles: () => readonly OpenFile[];
  /** Why the start emptied the index; undefined if it did not. */
  readonly indexFinding: IndexFinding | undefined;
  /** See RunningServer. */
  readonly failure: Promise<Error>;
  /** Marks the start as successful. Before that, closing leaves each file unchanged. */
  confirm(): void;
  /** Sets how long closing may take. Call it before closing. */
  stopWithin(graceMs: number): void;
}

/** Starts all parts except the listeners; `cleanup` stops them. @throws like startServer. */
export async function startEngine(
  given: Config,
  { logger, secrets, signal, cleanup, needsData, isRestored }: StartContext,
): Promise<RunningEngine> {
  reportCrypto(logger);
  const folder = openDataFolder(given.dataDir, logger);
  cleanup.add(() => folder.release(), "data folder");
  const { config, isCopy } = pauseCopy(given, { folder, logger, isRestored });
  const groups = groupsOf(config);
  let isStarted = false;
  const hasFailed = (): boolean => !isStarted && signal?.aborted !== true;
  const { needsHeadFile } = await checkDataFolder(folder, config, { logger, needsData });
  const newFiles = new NewFiles(folder.path("."));
  cleanup.add(() => (hasFailed() && groups.every(isEmbedded) ? newFiles.remove() : undefined), "new files");
  const failure = createDeferred<Error>();
  let stopBy: number | undefined;
  const unstartedGraceMs = (): number => (signal?.aborted === true ? config.shutdownDeadlineMs : failedStartGraceMs);
  const graceMs = (): number => (stopBy === undefined ? unstartedGraceMs() : Math.max(0, stopBy - clock.monotonic()));
  const parts = { folder, logger, cleanup, onFailure: failure.resolve, hasFailed };
  const embedded = groups.some(isEmbedded)
    ? await startEmbedded(config, { ...parts, graceMs, needsHeadFile })
    : undefined;
  signal?.throwIfAborted();
  let indexFinding: IndexFinding | undefined;
  const beforeEmptying = (finding: IndexFinding): Promise<void> => {
    indexFinding = finding;
    return checkBeforeEmptying(embedded?.chain, finding, { folder, logger, signal });
  };
  const { store, cluster, storeFile } = await createSharedServices(config, { ...parts, beforeEmptying });
  const metrics = createMetrics();
  const tracing = await findTracing({ version, logger });
  const sink = createSink(config, { metrics, cleanup, tracing });
  cleanup.add(() => sink.stop(graceMs()), "callbacks");
  const ledgers = await createLedgers(groups, {
    folder,
    secrets,
    clock,
    logger,
    cleanup,
    embedded,
    store,
    coordinator: cluster?.coordinator,
    isRemembered: config.coordination !== "none",
    maySign: !isCopy,
    publishing: config,
  });
  const sealed = createSealedStore(store, { box: new SecretBox(loadSecretKeys(config, { folder, logger })), logger });
  const processTrouble = await startWatches(config, { folder, clock, logger, metrics, cleanup });
  const auditLog = await startAuditLog(config, { clock, logger, cleanup });
  const shared = { metrics, logger, cluster, processTrouble, auditLog, tracing, onFailure: failure.resolve };
  const broker = await createEngine(config, { ledgers, store: sealed, sink, isRestored: isCopy, ...shared });
  cleanup.add(() => broker.stop(graceMs()), "broker");
  signal?.throwIfAborted();
  const file = embedded && chainFile(folder);
  const started = broker.start().catch((error: unknown) => Promise.reject(explainStart(error, file)));
  await Promise.race([started, failure.promise.then(throwIt), untilEnded(signal)]);
  return {
    config,
    broker,
    chain: embedded?.chain,
    metrics,
    folder,
    storeFile,
    openFiles: () => [embedded?.opened, storeFile()?.opened].filter((file) => file !== undefined),
    indexFinding,
    failure: failure.promise,
    confirm: () => void (isStarted = true),
    stopWithin: (ms) => void (stopBy = clock.monotonic() + ms),
  };
}

/**
 * Whether the group is on the embedded chain. If all groups are, a failed start removes its new files, unless it has changed a known database: no client has
 * seen their data.
 */
function isEmbedded({ endpoints }: GroupConfig): boolean {
  return endpoints === "embedded";
}

/** Logs which implementations are in use, as a warning if one is in JavaScript: it gives the same bytes, but at a tenth of the speed. */
function reportCrypto(logger: Logger): void {
  const isFast = cryptoInUse.signing === "native" && cryptoInUse.hashing === "wasm";
  logger[isFast ? "info" : "warn"]("cryptography chosen", cryptoInUse);
}

/** Rejects with the reason of `signal` once it aborts; never resolves. */
function untilEnded(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

function throwIt(error: unknown): never {
  throw error;
}

interface SharedServices {
  readonly store: Store & Journal & GroupRecords & SecretRows;
  /** What nodes of a cluster share besides the store; undefined for a single node. */
  readonly cluster: ClusterOptions | undefined;
  /** Returns the open store's file; undefined if the store has none. */
  readonly storeFile: () => HeldFile | undefined;
}

type StoreParts = FolderOptions & Required<Pick<SqlStoreOptions, "beforeEmptying">>;

async function createSharedServices(config: Config, parts: StoreParts): Promise<SharedServices> {
  const { folder, logger, onFailure: onFault, hasFailed: keepsLog, beforeEmptying } = parts;
  if (isClustered(config)) return createForCluster(config, parts);
  const [cluster, noFile] = [undefined, () => undefined];
  if (config.coordination === "none") return { store: createMemoryStore(), cluster, storeFile: noFile };
  const store = createSqlStore({ file: storeFile(folder), logger, onFault, keepsLog, beforeEmptying });
  return { store, cluster, storeFile: () => store.file };
}

/** The services of a node in a cluster. Loads the PostgreSQL driver only here: a single node does not need it. */
async function createForCluster(
  config: Config,
  { logger, cleanup, onFailure: onFault }: FolderOptions,
): Promise<SharedServices> {
  const { createPostgresStore } = await import("../store/sql/postgres/postgres-store.ts");
  const { createPostgresCoordinator } = await import("../store/sql/postgres/coordination/postgres-coordinator.ts");
  const url = databaseAddress(config, logger);
  const store = createPostgresStore({ url, logger, onFault, connectionsMax: config.databaseConnectionsMax });
  const coordinator = createPostgresCoordinator({ url, logger, onFault });
  cleanup.add(() => coordinator.stop(), "coordinator");
  const cluster = { coordinator, address: addressOfNode(config), records: store };
  return { store, cluster, storeFile: () => undefined };
}

function createSink(config: Config, { metrics, cleanup, tracing }: SinkOptions): Sink {
  const names = new DnsResolver({ clock, metrics, servers: config.callbackDnsServers });
  cleanup.add(() => names.close(), "name server");
  const sink = createWebhookSink({
    clock,
    metrics,
    version,
    resolver: (hostname) => names.resolve(hostname),
    consent: {
      mode: consentModeOf(config),
      trusted: config.callbackTrusted,
      origin: callbackOrigin(config, hostname()),
    },
    allowNetworks: config.callbackAllow,
    allowLoopback: listensOnLoopbackOnly(config),
    ownAddresses: () => Object.values(networkInterfaces()).flatMap((own = []) => own.map(({ address }) => address)),
    timeoutMs: config.callbackTimeoutMs,
    connectionsMax: config.callbackConnectionsMax,
    connectionsTotalMax: config.callbackConnectionsTotalMax,
    bytesPerSecondMax: config.callbackBytesPerSecondMax,
    cloudEvents: { extensionPrefix: config.extensionPrefix, type: config.cloudEventsType },
    ...(config.notificationPlace === "on" ? { places: new EventPlaces({ prefix: config.extensionPrefix }) } : {}),
  });
  const { extensionPrefix } = config;
  return tracing === undefined ? sink : new TracedSink({ sink, tracing, extensionPrefix });
}

interface SinkOptions {
  readonly metrics: MetricsRegistry;
  readonly tracing: Tracing | undefined;
  readonly cleanup: CleanupStack;
}

interface EngineDependencies {
  readonly ledgers: readonly Ledger[];
  readonly store: Store;
  readonly sink: Sink;
  readonly metrics: MetricsRegistry;
  readonly logger: Logger;
  readonly cluster: ClusterOptions | undefined;
  readonly processTrouble: () => ProcessTrouble;
  readonly tracing: Tracing | undefined;
  readonly auditLog: AuditLog | undefined;
  readonly isRestored: boolean;
  readonly onFailure: FolderOptions["onFailure"];
}

async function createEngine(config: Config, parts: EngineDependencies): Promise<RunningBroker> {
  const retentions = new Map(groupsOf(config).map(({ id, storeRetentionMs }) => [id, storeRetentionMs]));
  return createBroker({
    ...parts,
    retentionMsOf: (groupId) => retentions.get(groupId) ?? 0,
    clock,
    randomness,
    limits: toEngineLimits(config),
    defaultGroupId: parseGroupId(config.defaultGroup),
    extensionPrefix: config.extensionPrefix,
    hasCoordinator: config.coordination !== "none",
    deliveries: config.deliveries,
    keccak: keccak256,
    keys: await createKeyOptions(config, { ...parts, clock }),
    readMemory: () => process.memoryUsage.rss(),
  });
}

function leavingMs(config: Config): number {
  return isClustered(config) ? Math.min(leavingMsMax, config.shutdownDeadlineMs / 2) : 0;
}
