import { randomUUID } from "node:crypto";
import { asCaller, type CalledBroker } from "../../../engine/testing/as-caller.ts";
import type { EngineLimits } from "../../../engine/limits.ts";
import { silentLogger } from "../../../lib/logger.ts";
import type { TimeSlices } from "../../../lib/time-slices.ts";
import type { Ledger } from "../../../ports/ledger.ts";
import { createConnectionMemory, createMemoryEngine } from "../../testing/connection-world.ts";
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
  payload: "raw",
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
  readonly slices?: TimeSlices;
}

/** A broker over a chain in memory that listens for MQTT on loopback. */
export class MqttWorld {
  readonly broker: CalledBroker;
  readonly server: MqttServer;
  /** Of the memory that its connections share, what they hold. */
  readonly heldBytes: () => number;
  port = 0;

  private constructor({
    change,
    connectionsMax = 1_000,
    settings,
    limits,
    metrics,
    memoryBytesMax = 2 ** 26,
    slices,
  }: MqttWorldOptions) {
    const broker = createMemoryEngine({ change, limits });
    this.broker = asCaller(broker);
    const [memory, heldBytes] = createConnectionMemory(memoryBytesMax);
    this.heldBytes = heldBytes;
    this.server = new MqttServer({
      broker: broker.calls,
      logger: silentLogger,
      settings: { ...testSettings, ...settings },
      newClientId: () => randomUUID(),
      connectionsMax,
      metrics: { ...noMqttMetrics, ...metrics },
      memory,
      slices,
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
