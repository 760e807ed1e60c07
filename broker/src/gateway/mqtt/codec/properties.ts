/** A name with its value; names may repeat, and the order counts ([MQTT-3.1.3-10]). */
export type UserProperty = readonly [name: string, value: string];

/** Properties of MQTT 5.0, section 2.2.2. Absent ones are left out. Units are those of the standard. */
export interface Properties {
  readonly payloadFormatIndicator?: number;
  readonly messageExpiryInterval?: number;
  readonly contentType?: string;
  readonly responseTopic?: string;
  readonly correlationData?: Buffer;
  /** More than one only in a PUBLISH of the server. */
  readonly subscriptionIdentifiers?: readonly number[];
  readonly sessionExpiryInterval?: number;
  readonly assignedClientIdentifier?: string;
  readonly serverKeepAlive?: number;
  readonly authenticationMethod?: string;
  readonly authenticationData?: Buffer;
  readonly requestProblemInformation?: number;
  readonly willDelayInterval?: number;
  readonly requestResponseInformation?: number;
  readonly responseInformation?: string;
  readonly serverReference?: string;
  readonly reasonString?: string;
  readonly receiveMaximum?: number;
  readonly topicAliasMaximum?: number;
  readonly topicAlias?: number;
  readonly maximumQoS?: number;
  readonly retainAvailable?: number;
  readonly userProperties?: readonly UserProperty[];
  readonly maximumPacketSize?: number;
  readonly wildcardSubscriptionAvailable?: number;
  readonly subscriptionIdentifierAvailable?: number;
  readonly sharedSubscriptionAvailable?: number;
}

/** Shared by all packets without properties. */
export const NO_PROPERTIES: Properties = Object.freeze({});

/** How a value is written (MQTT 5.0, section 1.5). A flag is a byte of 0 or 1. */
export type PropertyForm = "flag" | "uint16" | "uint32" | "variable" | "string" | "binary" | "pair";

/** Where a property may occur. */
export type PropertyPlace =
  | "connect"
  | "will"
  | "connack"
  | "publish"
  | "puback"
  | "pubrec"
  | "pubrel"
  | "pubcomp"
  | "subscribe"
  | "suback"
  | "unsubscribe"
  | "unsuback"
  | "disconnect"
  | "auth";

export interface PropertyRule {
  readonly id: number;
  readonly name: keyof Properties;
  readonly form: PropertyForm;
  readonly places: readonly PropertyPlace[];
  /** Zero is forbidden. */
  readonly isNonZero?: boolean;
}

const acknowledgements = ["puback", "pubrec", "pubrel", "pubcomp", "suback", "unsuback"] as const;
const everywhere = [
  "connect",
  "will",
  "connack",
  "publish",
  ...acknowledgements,
  "subscribe",
  "unsubscribe",
  "disconnect",
  "auth",
] as const;

/** All properties (MQTT 5.0, table 2-4). */
export const propertyRules: readonly PropertyRule[] = [
  { id: 1, name: "payloadFormatIndicator", form: "flag", places: ["publish", "will"] },
  { id: 2, name: "messageExpiryInterval", form: "uint32", places: ["publish", "will"] },
  { id: 3, name: "contentType", form: "string", places: ["publish", "will"] },
  { id: 8, name: "responseTopic", form: "string", places: ["publish", "will"] },
  { id: 9, name: "correlationData", form: "binary", places: ["publish", "will"] },
  { id: 11, name: "subscriptionIdentifiers", form: "variable", places: ["publish", "subscribe"], isNonZero: true },
  { id: 17, name: "sessionExpiryInterval", form: "uint32", places: ["connect", "connack", "disconnect"] },
  { id: 18, name: "assignedClientIdentifier", form: "string", places: ["connack"] },
  { id: 19, name: "serverKeepAlive", form: "uint16", places: ["connack"] },
  { id: 21, name: "authenticationMethod", form: "string", places: ["connect", "connack", "auth"] },
  { id: 22, name: "authenticationData", form: "binary", places: ["connect", "connack", "auth"] },
  { id: 23, name: "requestProblemInformation", form: "flag", places: ["connect"] },
  { id: 24, name: "willDelayInterval", form: "uint32", places: ["will"] },
  { id: 25, name: "requestResponseInformation", form: "flag", places: ["connect"] },
  { id: 26, name: "responseInformation", form: "string", places: ["connack"] },
  { id: 28, name: "serverReference", form: "string", places: ["connack", "disconnect"] },
  { id: 31, name: "reasonString", form: "string", places: ["connack", ...acknowledgements, "disconnect", "auth"] },
  { id: 33, name: "receiveMaximum", form: "uint16", places: ["connect", "connack"], isNonZero: true },
  { id: 34, name: "topicAliasMaximum", form: "uint16", places: ["connect", "connack"] },
  { id: 35, name: "topicAlias", form: "uint16", places: ["publish"], isNonZero: true },
  { id: 36, name: "maximumQoS", form: "flag", places: ["connack"] },
  { id: 37, name: "retainAvailable", form: "flag", places: ["connack"] },
  { id: 38, name: "userProperties", form: "pair", places: everywhere },
  { id: 39, name: "maximumPacketSize", form: "uint32", places: ["connect", "connack"], isNonZero: true },
  { id: 40, name: "wildcardSubscriptionAvailable", form: "flag", places: ["connack"] },
  { id: 41, name: "subscriptionIdentifierAvailable", form: "flag", places: ["connack"] },
  { id: 42, name: "sharedSubscriptionAvailable", form: "flag", places: ["connack"] },
];
