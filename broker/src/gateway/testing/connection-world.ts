import { defaultGroupId } from "../../domain/group-id.ts";
import type { KeyOptions } from "../../engine/access/create-access.ts";
import { createBroker } from "../../engine/create-broker.ts";
import type { RunningBroker } from "../../engine/engine-options.ts";
import { defaultEngineLimits, type EngineLimits } from "../../engine/limits.ts";
import { asCaller, type CalledBroker } from "../../engine/testing/as-caller.ts";
import { RecordingSink } from "../../engine/testing/recording-sink.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { type Logger, silentLogger } from "../../lib/logger.ts";
import { createSystemClock } from "../../lib/system/clock.ts";
import { createSystemRandomness } from "../../lib/system/randomness.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import type { Store } from "../../ports/store.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { MemoryBudget } from "../in-flight/memory-budget.ts";
import type { Listener } from "../shared/connection/listener.ts";
import { ConnectionMemory } from "../shared/connection/memory.ts";

interface EngineOptions {
  /** A chain on which the test may cause reorgs; if left out, a chain without reorgs. */
  readonly chain?: MemoryChain | undefined;
  /** May replace methods of the ledger. */
  readonly change?: ((ledger: Ledger) => void) | undefined;
  /** Limits of the engine that differ from its defaults. */
  readonly limits?: Partial<EngineLimits> | undefined;
  /** Everybody may do everything if left out. */
  readonly keys?: KeyOptions | undefined;
  /** An empty store in memory if left out. */
  readonly store?: Store | undefined;
}

export interface ConnectionWorldOptions extends EngineOptions {
  readonly connectionsMax?: number;
  /** Memory for unfinished input. */
  readonly memoryBytesMax?: number;
  /** Time slices of the event loop; the server's default if left out. */
  readonly slices?: TimeSlices;
  /** Logger of the listener; silent if left out. */
  readonly logger?: Logger;
}

/** Options for the server of any protocol. */
export interface ServerParts {
  readonly broker: RunningBroker["calls"];
  readonly logger: Logger;
  readonly memory: ConnectionMemory;
  readonly connectionsMax: number;
  readonly slices: TimeSlices | undefined;
}

/** A broker over an in-memory chain, with a server on loopback. */
export class ConnectionWorld<Server extends Listener> {
  readonly broker: CalledBroker;
  readonly server: Server;
  /** Bytes that the connections hold of the memory that they share. */
  readonly heldBytes: () => number;
  port = 0;

  protected constructor(
    {
      connectionsMax = 1_000,
      memoryBytesMax = 2 ** 26,
      slices,
      logger = silentLogger,
      ...engine
    }: ConnectionWorldOptions,
    createServer: (parts: ServerParts) => Server,
  ) {
    const broker = createMemoryEngine(engine);
    this.broker = asCaller(broker);
    const [memory, heldBytes] = createConnectionMemory(memoryBytesMax);
    this.heldBytes = heldBytes;
    this.server = createServer({ broker: broker.calls, logger, memory, connectionsMax, slices });
  }

  protected async begin(): Promise<this> {
    await this.broker.start();
    this.port = Number(new URL(await this.server.listen({ host: "127.0.0.1", port: 0 })).port);
    return this;
  }

  async stop(): Promise<void> {
    await this.server.drain();
    await this.broker.stop(1_000);
  }
}

/** An engine over a chain and a store in memory. */
function createMemoryEngine({ chain, change = () => {}, limits, keys, store }: EngineOptions): RunningBroker {
  const clock = createSystemClock();
  const ledger = createMemoryLedger({
    groupId: defaultGroupId,
    chain: chain ?? new MemoryChain({ clock }),
    isFinal: chain === undefined,
    confirmations: 0,
  });
  change(ledger);
  return createBroker({
    ledgers: [ledger],
    keys,
    store: store ?? createMemoryStore(),
    sink: new RecordingSink(),
    clock,
    randomness: createSystemRandomness(),
    metrics: noMetrics,
    logger: silentLogger,
    limits: { ...defaultEngineLimits, ...limits },
    defaultGroupId,
    extensionPrefix: "svc-",
    hasCoordinator: true,
  });
}

/** Memory that only connections share, and a function that returns the bytes that they hold of it. */
function createConnectionMemory(bytesMax: number): [memory: ConnectionMemory, heldBytes: () => number] {
  let read: (() => number) | undefined;
  const watchBytesInFlight = (given: () => number): void => void (read = given);
  const budget = new MemoryBudget({ bytesMax, metrics: { connectionEnded: () => {}, watchBytesInFlight } });
  return [new ConnectionMemory(budget), () => read?.() ?? 0];
}
