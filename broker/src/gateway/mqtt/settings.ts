import type { TopicFilter } from "../../domain/topic-filter.ts";

/** What an operator chooses for every MQTT connection. */
export interface MqttSettings {
  /** What every extension key begins with. */
  readonly extensionPrefix: string;
  /** Whether a publish opens its topic. */
  readonly opensTopics: boolean;
  /** Publishes with QoS 1 and 2 of one connection under way at once: Receive Maximum of CONNACK. */
  readonly receiveMax: number;
  /** Topic aliases that a client may use: Topic Alias Maximum of CONNACK. */
  readonly topicAliasMax: number;
  /** Longest packet, fixed header included: Maximum Packet Size of CONNACK. */
  readonly packetBytesMax: number;
  /** Longest keep-alive of a 5.0 client, in seconds; 0 for any, also for none. */
  readonly keepAliveSecondsMax: number;
  /** The longest that a session outlasts its connection, in seconds. */
  readonly sessionExpirySecondsMax: number;
  /** How long a connection may take for its CONNECT. */
  readonly connectTimeoutMs: number;
  /** Whether publishes of QoS 0 are committed, or pass to those who are connected to this node and are committed nowhere. */
  readonly qos0: "commit" | "live";
  /** What subscribers get: the content of the event, or the event as JSON. */
  readonly payload: "raw" | "event";
  /** Whether a 5.0 client gets the event's identifier, sequence number and block as user properties. */
  readonly hasPlace: boolean;
  /** A subscription to one of these, or to a filter that they cover, is refused. */
  readonly filtersRefused: readonly TopicFilter[];
  /** Reason code of 5.0 for what the client has no right to: 0x87, or 0x80 for clients that know no other. */
  readonly denialCode: number;
}
