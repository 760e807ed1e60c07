/** Metrics of MQTT. Labels take few values: kinds of packets and reason codes of the standard. */
export interface MqttMetrics {
  /** The broker answered a client, or ended its connection. The codes are those of MQTT 5.0, for MQTT 3.1.1 clients too. */
  answered(packet: "connack" | "puback" | "pubrec" | "suback" | "disconnect", reasonCode: number): void;
  /** A publish of QoS 0 was refused; MQTT has no answer to tell its client. */
  publishLost(): void;
  /** A live event, which no chain keeps, was not sent to a client that reads slowly. */
  deliveryDropped(): void;
  /** Calls `read` on each scrape. */
  watchConnections(read: () => number): void;
}

/** Discards everything; for tests. */
export const noMqttMetrics: MqttMetrics = {
  answered: () => {},
  publishLost: () => {},
  deliveryDropped: () => {},
  watchConnections: () => {},
};
