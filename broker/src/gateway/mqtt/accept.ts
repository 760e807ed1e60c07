import type { ConnectPacket } from "./codec/packet.ts";
import { PacketError } from "./codec/packet-error.ts";
import type { Properties } from "./codec/properties.ts";
import {
  clientIdBytesMax,
  packetBytesMax,
  receiveMax,
  sessionExpirySecondsMax,
  topicAliasMax,
  windowDefault,
  windowMax,
} from "./limits.ts";
import { reason } from "./reason-codes.ts";

/** What a CONNECT asks for, as the broker grants it. */
export interface Accepted {
  readonly clientId: string;
  readonly groupId: string | undefined;
  readonly windowMax: number;
  readonly expirySeconds: number;
  /** Largest packet that the client takes. */
  readonly packetBytesMax: number;
  /** Whether the client wants to be told reasons in words. */
  readonly wantsReasons: boolean;
  /** Of the CONNACK. */
  readonly properties: Properties;
}

/** Name of the CONNECT's user property that says to which group a connection belongs. */
const groupProperty = "groupId";

/** @throws PacketError with the reason code of the CONNACK. `newClientId` names a client that leaves it to the broker. */
export function acceptConnect(packet: ConnectPacket, newClientId: () => string): Accepted {
  const { clientId, version, properties, isClean } = packet;
  if (properties.authenticationMethod !== undefined) {
    throw new PacketError(reason.authenticationMethodInvalid, "no authentication method is offered");
  }
  if (version === 5 && packet.will?.isRetained === true) {
    throw new PacketError(reason.retainNotSupported, "retained messages are not supported"); // [MQTT-3.2.2-13]
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
  const windowAsked = properties.receiveMaximum ?? (version === 5 ? windowMax : windowDefault);
  return {
    clientId: assigned ?? clientId,
    groupId: properties.userProperties?.find(([name]) => name === groupProperty)?.[1],
    windowMax: Math.min(windowAsked, windowMax),
    expirySeconds,
    packetBytesMax: properties.maximumPacketSize ?? Number.POSITIVE_INFINITY,
    wantsReasons: properties.requestProblemInformation !== 0,
    properties: {
      receiveMaximum: receiveMax,
      maximumPacketSize: packetBytesMax,
      topicAliasMaximum: topicAliasMax,
      retainAvailable: 0,
      sharedSubscriptionAvailable: 0,
      ...(assigned !== undefined && { assignedClientIdentifier: assigned }),
      ...(asked > expirySeconds && { sessionExpiryInterval: expirySeconds }),
    },
  };
}
