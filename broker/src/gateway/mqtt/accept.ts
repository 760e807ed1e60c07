import type { ConnectPacket } from "./codec/packet.ts";
import { PacketError } from "./codec/packet-error.ts";
import type { Properties } from "./codec/properties.ts";
import { clientIdBytesMax, windowDefault, windowMax } from "./limits.ts";
import { reason } from "./reason-codes.ts";
import type { MqttSettings } from "./settings.ts";

/** The parameters of a CONNECT, as the broker grants them. */
export interface Accepted {
  readonly clientId: string;
  readonly groupId: string | undefined;
  readonly windowMax: number;
  readonly expirySeconds: number;
  /** Whether the client asked for a session that outlasts the connection. The broker may grant none. */
  readonly asksExpiry: boolean;
  /** 0 for none. */
  readonly keepAliveSeconds: number;
  /** Largest packet that the client accepts, in bytes. */
  readonly packetBytesMax: number;
  /** Whether the client wants reason strings. */
  readonly wantsReasons: boolean;
  /** Properties of the CONNACK. */
  readonly properties: Properties;
}

/** User property of the CONNECT that names the group of a connection. */
const groupProperty = "groupId";

export interface AcceptOptions {
  /** Makes an identifier for a client that gives none. */
  readonly newClientId: () => string;
  readonly settings: MqttSettings;
}

/** @throws PacketError with the reason code of the CONNACK. */
export function acceptConnect(packet: ConnectPacket, { newClientId, settings }: AcceptOptions): Accepted {
  const { clientId, version, properties, isClean } = packet;
  const { sessionExpirySecondsMax } = settings;
  if (properties.authenticationMethod !== undefined) {
    throw new PacketError(reason.authenticationMethodInvalid, "no authentication method is offered");
  }
  if (Buffer.byteLength(clientId) > clientIdBytesMax) {
    throw new PacketError(reason.clientIdInvalid, `the client identifier has more than ${clientIdBytesMax} bytes`);
  }
  if (clientId === "" && version === 4 && !isClean) {
    throw new PacketError(reason.clientIdInvalid, "a session that is kept needs a client identifier"); // 3.1.1, [MQTT-3.1.3-8]
  }
  const assigned = clientId === "" ? newClientId() : undefined;
  const asked = version === 5 ? (properties.sessionExpiryInterval ?? 0) : isClean ? 0 : sessionExpirySecondsMax;
  const expirySeconds = Math.min(asked, sessionExpirySecondsMax);
  const keepAliveSeconds = version === 5 ? boundKeepAlive(packet, settings) : packet.keepAliveSeconds;
  const windowAsked = properties.receiveMaximum ?? (version === 5 ? windowMax : windowDefault);
  return {
    clientId: assigned ?? clientId,
    groupId: properties.userProperties?.find(([name]) => name === groupProperty)?.[1],
    windowMax: Math.min(windowAsked, windowMax),
    expirySeconds,
    asksExpiry: asked > 0,
    keepAliveSeconds,
    packetBytesMax: properties.maximumPacketSize ?? Number.POSITIVE_INFINITY,
    wantsReasons: properties.requestProblemInformation !== 0,
    properties: {
      receiveMaximum: settings.receiveMax,
      maximumPacketSize: settings.packetBytesMax,
      topicAliasMaximum: settings.topicAliasMax,
      ...(assigned !== undefined && { assignedClientIdentifier: assigned }),
      ...(keepAliveSeconds !== packet.keepAliveSeconds && { serverKeepAlive: keepAliveSeconds }),
      ...(asked > expirySeconds && { sessionExpiryInterval: expirySeconds }),
    },
  };
}

/** Limits the keep-alive of a 5.0 client, which must use the broker's in place of its own ([MQTT-3.1.2-21]). */
function boundKeepAlive({ keepAliveSeconds }: ConnectPacket, { keepAliveSecondsMax }: MqttSettings): number {
  if (keepAliveSecondsMax === 0) return keepAliveSeconds;
  return keepAliveSeconds === 0 ? keepAliveSecondsMax : Math.min(keepAliveSeconds, keepAliveSecondsMax);
}
