import { defaultGroupId } from "../../../domain/group-id.ts";
import { asCaller, type CalledBroker } from "../../../engine/testing/as-caller.ts";
import { createBroker } from "../../../engine/create-broker.ts";
import { defaultEngineLimits, type EngineLimits } from "../../../engine/limits.ts";
import { RecordingSink } from "../../../engine/testing/recording-sink.ts";
import { createMemoryLedger } from "../../../ledger/memory/memory-ledger.ts";
import { MemoryChain } from "../../../ledger/memory/memory-chain.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { createSystemClock } from "../../../lib/system/clock.ts";
import { createSystemRandomness } from "../../../lib/system/randomness.ts";
import type { Ledger } from "../../../ports/ledger.ts";
import { noMetrics } from "../../../ports/metrics.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import { MemoryBudget } from "../../in-flight/memory-budget.ts";
import { type MqttMetrics, noMqttMetrics } from "../metrics.ts";
import { MqttServer } from "../mqtt-server.ts";
import { reason } from "../reason-codes.ts";
import type { MqttSettings } from "../settings.ts";

/** As the settings of the broker are by default. */
export const testSettings: MqttSettings = {
  extensionPrefix: "svc-",
  opensTopics: true,
  receiveMax: 1_000,
  topicAliasMax: 100,
  packetBytesMax: 512 * 1024,
  keepAliveSecondsMax: 0,
  sessionExpirySecondsMax: 7 * 24 * 60 * 60,
  connectTimeoutMs: 10_000,
  hasPlace: true,
  filtersRefused: [],
  denialCode: reason.notAuthorized,
};

export interface MqttWorldOptions {
  /** May give the ledger other answers. */
  readonly change?: (ledger: Ledger) => void;
  readonly connectionsMax?: number;
  /** Limits of the engine that differ from its defaults. */
  readonly limits?: Partial<EngineLimits>;
  readonly metrics?: Partial<MqttMetrics>;
  /** Memory for unfinished packets. */
  readonly memoryBytesMax?: number;
  /** Those that differ from {@link testSettings}. */
  readonly settings?: Partial<MqttSettings>;
}

/** A broker over a chain in memory that listens for MQTT on loopback. */
export class MqttWorld {
  readonly broker: CalledBroker;
  readonly server: MqttServer;
  port = 0;

  private constructor({
    change = () => {},
    connectionsMax = 1_000,
    settings,
    limits,
    metrics,
    memoryBytesMax = 2 ** 26,
  }: MqttWorldOptions) {
    const clock = createSystemClock();
    const randomness = createSystemRandomness();
    const finality = { isFinal: true, confirmations: 0 };
    const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: new MemoryChain({ clock }), ...finality });
    change(ledger);
    const broker = createBroker({
      ledgers: [ledger],
      store: createMemoryStore(),
      sink: new RecordingSink(),
      clock,
      randomness,
      metrics: noMetrics,
      logger: silentLogger,
      limits: { ...defaultEngineLimits, ...limits },
      defaultGroupId,
      extensionPrefix: "svc-",
      hasCoordinator: true,
    });
    this.broker = asCaller(broker);
    this.server = new MqttServer({
      broker: broker.calls,
      logger: silentLogger,
      settings: { ...testSettings, ...settings },
      newClientId: () => randomness.uuid(),
      connectionsMax,
      metrics: { ...noMqttMetrics, ...metrics },
      budget: new MemoryBudget({
        bytesMax: memoryBytesMax,
        metrics: { connectionEnded: () => {}, watchBytesInFlight: () => {} },
      }),
    });
  }

  static async start(options: MqttWorldOptions = {}): Promise<MqttWorld> {
    const world = new MqttWorld(options);
    await world.broker.start();
    world.port = Number(new URL(await world.server.listen({ host: "127.0.0.1", port: 0 })).port);
    return world;
  }

  async stop(): Promise<void> {
    await this.server.drain();
    await this.broker.stop(1_000);
  }
}
