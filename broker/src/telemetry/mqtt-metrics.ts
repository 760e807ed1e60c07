import { Counter, type Registry } from "prom-client";
import { watchConnections } from "./watch-connections.ts";

/** Metrics of the MQTT listener. The labels of an answer are the type of its packet and its reason code (MQTT 5.0, section 2.4). */
export interface MqttCounters {
  answered(packet: string, reasonCode: number): void;
  publishLost(): void;
  deliveryDropped(): void;
  watchConnections(read: () => number): void;
}

/** Answers that operators watch: successes, and refusals by access, quotas and load. Their counters start at 0, so that the first one is an increase. */
const watchedAnswers = [
  ["connack", "0x00"],
  ["connack", "0x86"],
  ["connack", "0x87"],
  ["connack", "0x97"],
  ["puback", "0x00"],
  ["puback", "0x87"],
  ["puback", "0x97"],
  ["pubrec", "0x00"],
  ["suback", "0x00"],
  ["suback", "0x01"],
  ["suback", "0x02"],
  ["suback", "0x87"],
  ["disconnect", "0x00"],
] as const;

export function createMqttMetrics(registry: Registry): MqttCounters {
  const registers = [registry];
  const answers = new Counter({
    registers,
    labelNames: ["packet", "code"] as const,
    name: "stele_mqtt_answers_total",
    help: "CONNACK, PUBACK, PUBREC, SUBACK and DISCONNECT of the broker, by reason code of MQTT 5.0.",
  });
  const lost = new Counter({
    registers,
    name: "stele_mqtt_publishes_lost_total",
    help: "Publishes with QoS 0 that the broker refused; MQTT has no answer that tells their clients.",
  });
  const dropped = new Counter({
    registers,
    name: "stele_mqtt_deliveries_dropped_total",
    help: "Uncommitted events (QoS 0 with mqttQos0: live) that a subscriber did not get because it reads slowly.",
  });
  for (const [packet, code] of watchedAnswers) answers.inc({ packet, code }, 0);
  return {
    answered: (packet, reasonCode) => answers.inc({ packet, code: `0x${reasonCode.toString(16).padStart(2, "0")}` }),
    publishLost: () => lost.inc(),
    deliveryDropped: () => dropped.inc(),
    watchConnections: (read) => watchConnections(registry, { read, name: "stele_mqtt_connections", protocol: "MQTT" }),
  };
}
