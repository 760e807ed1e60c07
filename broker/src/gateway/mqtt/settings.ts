import type { TopicFilter } from "../../domain/topic-filter.ts";

/** What an operator chooses for every MQTT connection. */
export interface MqttSettings {
  /** Prefix of every extension key. */
  readonly extensionPrefix: string;
  /** Whether a publish opens its topic. */
  readonly opensTopics: boolean;
  /** Publishes with QoS 1 and 2 of one connection under way at once: Receive Maximum of CONNACK. */
  readonly receiveMax: number;
  /** Topic aliases that a client may use: Topic Alias Maximum of CONNACK. */
  readonly topicAliasMax: number;
  /** Longest packet, fixed header included: Maximum Packet Size of CONNACK. */
  readonly packetBytesMax: number;
  /** Longest keep-alive of a 5.0 client, in seconds; 0 for no limit. */
  readonly keepAliveSecondsMax: number;
  /** The longest that a session outlasts its connection, in seconds. */
  readonly sessionExpirySecondsMax: number;
  /** How long a client may take to send its CONNECT. */
  readonly connectTimeoutMs: number;
  /** Whether publishes of QoS 0 are committed, or only passed to subscribers that are connected to this node. Retained ones are always committed. */
  readonly qos0: "commit" | "live";
  /** What subscribers get: the content of the event, or the event as JSON. */
  readonly payload: "raw" | "event";
  /** Whether a 5.0 client gets the event's identifier, sequence number and block as user properties. */
  readonly hasEventPlace: boolean;
  /** No client may subscribe to these filters, or to a filter that one of them covers. */
  readonly filtersRefused: readonly TopicFilter[];
  /** Reason code of a SUBACK of 5.0 for a missing right: 0x87, or 0x80 for clients that know no other. */
  readonly denialCode: number;
}
