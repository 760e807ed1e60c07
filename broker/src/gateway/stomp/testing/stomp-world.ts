import { randomUUID } from "node:crypto";
import { asCaller, type CalledBroker } from "../../../engine/testing/as-caller.ts";
import { silentLogger } from "../../../lib/logger.ts";
import type { TimeSlices } from "../../../lib/time-slices.ts";
import { createConnectionMemory, createMemoryEngine, type EngineOptions } from "../../testing/connection-world.ts";
import { noStompMetrics, type StompMetrics } from "../metrics.ts";
import { createStandardProfile, type Profile } from "../profile.ts";
import type { StompSettings } from "../settings.ts";
import { StompServer } from "../stomp-server.ts";

/** As the settings of the broker are by default. */
const testSettings: StompSettings = {
  extensionPrefix: "svc-",
  opensTopics: true,
  bodyBytesMax: 512 * 1024,
  subscriptionsMax: 100,
  subscriptionExpirySeconds: 60,
  connectTimeoutMs: 10_000,
};

const testProfile = createStandardProfile({ hasImplicitReceipts: false, heartBeatMs: 0 });

export interface StompWorldOptions extends EngineOptions {
  readonly connectionsMax?: number;
  readonly metrics?: Partial<StompMetrics>;
  /** Memory for unfinished frames. */
  readonly memoryBytesMax?: number;
  /** Those that differ from the defaults. */
  readonly settings?: Partial<StompSettings>;
  readonly profile?: Partial<Profile>;
  /** Of the event loop; its own if left out. */
  readonly slices?: TimeSlices;
}

/** A broker over a chain in memory that listens for STOMP on loopback. */
export class StompWorld {
  readonly broker: CalledBroker;
  readonly server: StompServer;
  /** Of the memory that its connections share, what they hold. */
  readonly heldBytes: () => number;
  port = 0;

  private constructor({
    connectionsMax = 1_000,
    metrics,
    memoryBytesMax = 2 ** 26,
    settings,
    profile,
    slices,
    ...engine
  }: StompWorldOptions) {
    const broker = createMemoryEngine(engine);
    this.broker = asCaller(broker);
    const [memory, heldBytes] = createConnectionMemory(memoryBytesMax);
    this.heldBytes = heldBytes;
    this.server = new StompServer({
      broker: broker.calls,
      logger: silentLogger,
      settings: { ...testSettings, ...settings },
      profile: { ...testProfile, ...profile },
      server: "Stele/test",
      newId: () => randomUUID(),
      connectionsMax,
      metrics: { ...noStompMetrics, ...metrics },
      memory,
      slices,
    });
  }

  static async start(options: StompWorldOptions = {}): Promise<StompWorld> {
    const world = new StompWorld(options);
    await world.broker.start();
    world.port = Number(new URL(await world.server.listen({ host: "127.0.0.1", port: 0 })).port);
    return world;
  }

  async stop(): Promise<void> {
    await this.server.drain();
    await this.broker.stop(1_000);
  }
}
