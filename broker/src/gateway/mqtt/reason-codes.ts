import { type BrokerError, errorCatalogue } from "@stele/wire";
import type { EndReason } from "../../engine/session/peer.ts";

/** Reason codes of MQTT 5.0, section 2.4, that the broker gives besides those of the codec. */
export const reason = {
  success: 0x00,
  noSubscription: 0x11,
  unspecified: 0x80,
  implementationSpecific: 0x83,
  clientIdInvalid: 0x85,
  badCredential: 0x86,
  notAuthorized: 0x87,
  serverUnavailable: 0x88,
  shuttingDown: 0x8b,
  authenticationMethodInvalid: 0x8c,
  keepAliveTimeout: 0x8d,
  sessionTakenOver: 0x8e,
  filterInvalid: 0x8f,
  topicNameInvalid: 0x90,
  packetIdNotFound: 0x92,
  receiveMaximumExceeded: 0x93,
  topicAliasInvalid: 0x94,
  quotaExceeded: 0x97,
  retainNotSupported: 0x9a,
} as const;

/** Reason codes of the DISCONNECT that an MQTT 5.0 client gets when its session ends its connection. */
export const endReasonCodes: Readonly<Record<EndReason, number>> = {
  "taken-over": reason.sessionTakenOver,
  removed: reason.unspecified,
  stopping: reason.shuttingDown,
  failed: reason.unspecified,
  stale: reason.unspecified,
  refused: reason.notAuthorized,
};

/** Why the broker ended a connection, for the log. Undefined for a reason that ends all connections at once: the broker logs that only once. */
export const endReasonTexts: Readonly<Record<EndReason, string | undefined>> = {
  "taken-over": "another connection with this client identifier took the session over",
  removed: "unSubscribe ended the session",
  stopping: undefined,
  failed: "an event could not be delivered",
  stale: undefined,
  refused: "the client's rights ended",
};

/** Codes of contents and extensions that are too long. */
const tooLong: ReadonlySet<number> = new Set([
  errorCatalogue.contentTooLong.code,
  errorCatalogue.extensionsTooLong.code,
]);

/** Codes of topic names that the broker does not accept. */
const topicNames: ReadonlySet<number> = new Set([
  errorCatalogue.topicBlank.code,
  errorCatalogue.topicTooLong.code,
  errorCatalogue.topicInvalidCharacter.code,
]);

/** The reason code for a refused or failed call. */
export function toReasonCode(error: BrokerError): number {
  switch (error.kind) {
    case "unauthenticated":
    case "forbidden":
      return reason.notAuthorized;
    case "exhausted":
      return reason.quotaExceeded;
    case "invalid":
      if (tooLong.has(error.code)) return reason.quotaExceeded;
      return topicNames.has(error.code) ? reason.topicNameInvalid : reason.implementationSpecific;
    default:
      return reason.implementationSpecific;
  }
}

/** The reason code for a refused CONNECT. */
export function toConnectCode(error: BrokerError): number {
  if (error.kind === "unavailable") return reason.serverUnavailable;
  return error.kind === "unauthenticated" ? reason.badCredential : toReasonCode(error);
}

/**
 * Return codes of a 3.1.1 CONNACK (section 3.2.2.3) for the reasons of 5.0. Undefined if none fits, as for a will with an invalid topic name: the connection
 * then closes without a CONNACK ([MQTT-3.2.2-6]).
 */
export function toReturnCode(reasonCode: number): number | undefined {
  switch (reasonCode) {
    case reason.success:
      return 0;
    case 0x84:
      return 1;
    case reason.clientIdInvalid:
      return 2;
    case reason.badCredential:
      return 4;
    case reason.notAuthorized:
      return 5;
    case reason.unspecified:
    case reason.implementationSpecific:
    case reason.serverUnavailable:
    case reason.shuttingDown:
    case reason.quotaExceeded:
      return 3;
    default:
      return undefined;
  }
}
