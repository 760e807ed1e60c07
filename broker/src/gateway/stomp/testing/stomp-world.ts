import { randomUUID } from "node:crypto";
import { ConnectionWorld, type ConnectionWorldOptions } from "../../testing/connection-world.ts";
import { noStompMetrics, type StompMetrics } from "../metrics.ts";
import type { StompSettings } from "../settings.ts";
import { StompServer } from "../stomp-server.ts";

/** The broker's default settings, with a shorter expiry of durable subscriptions. */
const testSettings: StompSettings = {
  extensionPrefix: "svc-",
  opensTopics: true,
  bodyBytesMax: 512 * 1024,
  subscriptionsMax: 100,
  subscriptionExpirySeconds: 60,
  connectTimeoutMs: 10_000,
  heartBeatMs: 0,
  hasImplicitReceipts: false,
};

export interface StompWorldOptions extends ConnectionWorldOptions {
  readonly metrics?: Partial<StompMetrics>;
  /** Settings that differ from {@link testSettings}. */
  readonly settings?: Partial<StompSettings>;
}

/** A broker over an in-memory chain, with a STOMP server on loopback. */
export class StompWorld extends ConnectionWorld<StompServer> {
  static start({ metrics, settings, ...options }: StompWorldOptions = {}): Promise<StompWorld> {
    const world = new StompWorld(options, (parts) => {
      return new StompServer({
        ...parts,
        settings: { ...testSettings, ...settings },
        server: "Stele/test",
        newId: () => randomUUID(),
        metrics: { ...noStompMetrics, ...metrics },
      });
    });
    return world.begin();
  }
}
