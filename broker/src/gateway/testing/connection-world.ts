import { defaultGroupId } from "../../domain/group-id.ts";
import { createBroker, type RunningBroker } from "../../engine/create-broker.ts";
import { defaultEngineLimits, type EngineLimits } from "../../engine/limits.ts";
import { RecordingSink } from "../../engine/testing/recording-sink.ts";
import { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createSystemClock } from "../../lib/system/clock.ts";
import { createSystemRandomness } from "../../lib/system/randomness.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { MemoryBudget } from "../in-flight/memory-budget.ts";
import { ConnectionMemory } from "../shared/connection/memory.ts";

export interface EngineOptions {
  /** May give the ledger other answers. */
  readonly change?: ((ledger: Ledger) => void) | undefined;
  /** Limits of the engine that differ from its defaults. */
  readonly limits?: Partial<EngineLimits> | undefined;
}

/** An engine over a chain and a store in memory, for gateways whose clients hold a connection. */
export function createMemoryEngine({ change = () => {}, limits }: EngineOptions): RunningBroker {
  const clock = createSystemClock();
  const finality = { isFinal: true, confirmations: 0 };
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: new MemoryChain({ clock }), ...finality });
  change(ledger);
  return createBroker({
    ledgers: [ledger],
    store: createMemoryStore(),
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

/** Memory of connections that counts for nobody else, and the bytes that they hold of it. */
export function createConnectionMemory(bytesMax: number): [memory: ConnectionMemory, heldBytes: () => number] {
  let read: (() => number) | undefined;
  const watchBytesInFlight = (given: () => number): void => void (read = given);
  const budget = new MemoryBudget({ bytesMax, metrics: { connectionEnded: () => {}, watchBytesInFlight } });
  return [new ConnectionMemory(budget), () => read?.() ?? 0];
}
