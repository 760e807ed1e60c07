import { defaultGroupId } from "../../domain/group-id.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import type { MemoryChain } from "../../ledger/memory/memory-chain.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { Ledger } from "../../ports/ledger.ts";
import { noMetrics } from "../../ports/metrics.ts";
import type { Store } from "../../ports/store.ts";
import type { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import { createBroker } from "../create-broker.ts";
import { defaultEngineLimits } from "../limits.ts";
import { asCaller, type CalledBroker } from "./as-caller.ts";
import type { FaultyPorts } from "./faulty-ports.ts";
import { RecordingSink } from "./recording-sink.ts";

/** The parts that remain when a broker stops or dies. */
export interface Outliving {
  readonly clock: VirtualClock;
  readonly chain: MemoryChain;
  readonly store: Store;
  readonly nextUuid: () => string;
}

/** Starts a broker whose calls of the ledger and the store may fail. */
export async function startOnFaultyPorts(
  { clock, chain, store, nextUuid }: Outliving,
  ports: FaultyPorts,
): Promise<CalledBroker> {
  const broker = asCaller(
    createBroker({
      ledgers: [ports.wrap<Ledger>(createMemoryLedger({ groupId: defaultGroupId, chain }))],
      store: ports.wrap<Store>(store),
      sink: new RecordingSink(),
      clock,
      randomness: { fraction: () => 0.5, uuid: nextUuid, bytes: (count) => new Uint8Array(count) },
      metrics: noMetrics,
      logger: silentLogger,
      limits: { ...defaultEngineLimits, transactionTimeoutMs: 5_000 },
      defaultGroupId,
      extensionPrefix: "svc-",
      hasCoordinator: true,
    }),
  );
  const started = broker.start();
  await clock.advance(100);
  await started;
  return broker;
}
