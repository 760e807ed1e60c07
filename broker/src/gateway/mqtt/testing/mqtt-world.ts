import { randomUUID } from "node:crypto";
import type { Broker, PublishCall } from "../../../engine/broker.ts";
import { withCalls } from "../../../lib/with-calls.ts";
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
  /** Called with each publish that a connection submits. */
  readonly onSubmitted?: (call: PublishCall) => void;
}

/** A broker over an in-memory chain, with an MQTT server on loopback. */
export class MqttWorld extends ConnectionWorld<MqttServer> {
  static start({ metrics, settings, onSubmitted, ...options }: MqttWorldOptions = {}): Promise<MqttWorld> {
    const world = new MqttWorld(options, (parts) => {
      const submit: Broker["submit"] = (caller, call, onSettled) => {
        onSubmitted?.(call);
        parts.broker.submit(caller, call, onSettled);
      };
      return new MqttServer({
        ...parts,
        broker: withCalls(parts.broker, { submit }),
        settings: { ...testSettings, ...settings },
        newClientId: () => randomUUID(),
        metrics: { ...noMqttMetrics, ...metrics },
      });
    });
    return world.begin();
  }
}
