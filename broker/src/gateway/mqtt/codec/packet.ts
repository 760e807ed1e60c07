import type { Properties } from "./properties.ts";

/** Levels of the protocol: 4 is MQTT 3.1.1, 5 is MQTT 5.0. */
export type ProtocolVersion = 4 | 5;

export type QoS = 0 | 1 | 2;

/** Numbers of the packet types (MQTT 5.0, table 2-1). */
export const packetType = {
  connect: 1,
  connack: 2,
  publish: 3,
  puback: 4,
  pubrec: 5,
  pubrel: 6,
  pubcomp: 7,
  subscribe: 8,
  suback: 9,
  unsubscribe: 10,
  unsuback: 11,
  pingreq: 12,
  pingresp: 13,
  disconnect: 14,
  auth: 15,
} as const;

export interface Will {
  readonly topic: string;
  readonly payload: Buffer;
  readonly qos: QoS;
  readonly isRetained: boolean;
  readonly properties: Properties;
}

export interface ConnectPacket {
  readonly type: "connect";
  readonly version: ProtocolVersion;
  /** Clean Session of 3.1.1, Clean Start of 5.0. */
  readonly isClean: boolean;
  readonly keepAliveSeconds: number;
  /** Empty if the server is to choose one. */
  readonly clientId: string;
  readonly will: Will | undefined;
  readonly userName: string | undefined;
  readonly password: Buffer | undefined;
  readonly properties: Properties;
}

export interface PublishPacket {
  readonly type: "publish";
  readonly topic: string;
  /** A view of the received bytes, valid for as long as they are. */
  readonly payload: Buffer;
  readonly qos: QoS;
  readonly isDuplicate: boolean;
  readonly isRetained: boolean;
  /** 1 to 65,535; 0 with QoS 0. */
  readonly packetId: number;
  readonly properties: Properties;
}

export type AcknowledgementType = "puback" | "pubrec" | "pubrel" | "pubcomp";

export interface AcknowledgementPacket {
  readonly type: AcknowledgementType;
  readonly packetId: number;
  readonly reasonCode: number;
  readonly properties: Properties;
}

export interface SubscriptionRequest {
  readonly filter: string;
  readonly qos: QoS;
  readonly isNoLocal: boolean;
  readonly isRetainAsPublished: boolean;
  /** 0: send retained messages; 1: only for a new subscription; 2: never. */
  readonly retainHandling: 0 | 1 | 2;
}

export interface SubscribePacket {
  readonly type: "subscribe";
  readonly packetId: number;
  readonly requests: readonly SubscriptionRequest[];
  readonly properties: Properties;
}

export interface UnsubscribePacket {
  readonly type: "unsubscribe";
  readonly packetId: number;
  readonly filters: readonly string[];
  readonly properties: Properties;
}

export interface PingPacket {
  readonly type: "pingreq";
}

export interface DisconnectPacket {
  readonly type: "disconnect";
  readonly reasonCode: number;
  readonly properties: Properties;
}

export interface AuthPacket {
  readonly type: "auth";
  readonly reasonCode: number;
  readonly properties: Properties;
}

/** The packets that a client may send. */
export type ClientPacket =
  | ConnectPacket
  | PublishPacket
  | AcknowledgementPacket
  | SubscribePacket
  | UnsubscribePacket
  | PingPacket
  | DisconnectPacket
  | AuthPacket;
