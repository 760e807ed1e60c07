import { randomUUID } from "node:crypto";
import { ConnectionWorld, type ConnectionWorldOptions } from "../../testing/connection-world.ts";
import { type MqttMetrics, noMqttMetrics } from "../metrics.ts";
import { MqttServer } from "../mqtt-server.ts";
import { reason } from "../reason-codes.ts";
import type { MqttSettings } from "../settings.ts";

/** The broker's default settings. */
export const testSettings: MqttSettings = {
  extensionPrefix: "svc-",
  opensTopics: true,
  receiveMax: 1_000,
  topicAliasMax: 100,
  packetBytesMax: 512 * 1024,
  keepAliveSecondsMax: 0,
  sessionExpirySecondsMax: 7 * 24 * 60 * 60,
  connectTimeoutMs: 10_000,
  qos0: "commit",
  payload: "raw",
  hasEventPlace: true,
  filtersRefused: [],
  denialCode: reason.notAuthorized,
};

export interface MqttWorldOptions extends ConnectionWorldOptions {
  readonly metrics?: Partial<MqttMetrics>;
  /** Settings that differ from {@link testSettings}. */
  readonly settings?: Partial<MqttSettings>;
}

/** A broker over an in-memory chain, with an MQTT server on loopback. */
export class MqttWorld extends ConnectionWorld<MqttServer> {
  static start({ metrics, settings, ...options }: MqttWorldOptions = {}): Promise<MqttWorld> {
    const world = new MqttWorld(options, (parts) => {
      return new MqttServer({
        ...parts,
        settings: { ...testSettings, ...settings },
        newClientId: () => randomUUID(),
        metrics: { ...noMqttMetrics, ...metrics },
      });
    });
    return world.begin();
  }
}
