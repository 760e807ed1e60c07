import { ByteReader } from "./byte-reader.ts";
import { malformed, PacketError, protocolError, QUOTA_EXCEEDED, TOPIC_ALIAS_INVALID } from "./packet-error.ts";
import {
  NO_PROPERTIES,
  type Properties,
  type PropertyPlace,
  type PropertyRule,
  propertyRules,
  type UserProperty,
} from "./properties.ts";

/** User properties of one packet: enough for all extensions of an event, even if each is very short. */
const userPropertiesMax = 1_000;

const rulesById = new Map(propertyRules.map((rule) => [rule.id, rule]));

/** Reads the properties of a packet from a client. @throws PacketError if one is unknown, misplaced, repeated or invalid, or if they are too many. */
export function readProperties(reader: ByteReader, place: PropertyPlace): Properties {
  const length = reader.readVariableInteger();
  if (length === 0) return NO_PROPERTIES;
  const block = new ByteReader(reader.readBytes(length));
  const values: Record<string, unknown> = {};
  while (!block.isAtEnd) readProperty(block, place, values);
  return values; // built by the rules, whose names and forms are those of Properties
}

function readProperty(block: ByteReader, place: PropertyPlace, values: Record<string, unknown>): void {
  const rule = findRule(block.readVariableInteger(), place);
  const { name } = rule;
  if (rule.form === "pair") {
    const pairs = (values[name] ??= []) as UserProperty[]; // only this line writes it
    if (pairs.length >= userPropertiesMax) {
      throw new PacketError(QUOTA_EXCEEDED, `a packet with more than ${userPropertiesMax} user properties`);
    }
    pairs.push([block.readString(), block.readString()]);
    return;
  }
  if (name in values) throw protocolError(`the property ${name} occurs twice`);
  const value = readValue(block, rule);
  // [MQTT-3.3.2-14]
  if (name === "responseTopic" && /[+#]/.test(String(value))) throw protocolError("the response topic has a wildcard");
  values[name] = name === "subscriptionIdentifiers" ? [value] : value;
}

function findRule(id: number, place: PropertyPlace): PropertyRule {
  const rule = rulesById.get(id);
  if (rule === undefined) throw malformed(`${id} is not a property`);
  if (!rule.places.includes(place)) throw malformed(`the property ${rule.name} does not belong in ${place}`); // section 2.2.2.2
  if (rule.name === "subscriptionIdentifiers" && place === "publish") {
    throw protocolError("a client's PUBLISH has a subscription identifier"); // [MQTT-3.3.4-6]
  }
  return rule;
}

function readValue(block: ByteReader, { form, name, isNonZero }: PropertyRule): unknown {
  if (form === "string") return block.readString();
  if (form === "binary") return block.readBinary();
  const value = readNumber(block, form);
  if (form === "flag" && value > 1) throw protocolError(`the property ${name} is ${value}, neither 0 nor 1`);
  if (value === 0 && isNonZero === true) {
    throw name === "topicAlias"
      ? new PacketError(TOPIC_ALIAS_INVALID, "the topic alias is 0")
      : protocolError(`the property ${name} is 0`);
  }
  return value;
}

function readNumber(block: ByteReader, form: PropertyRule["form"]): number {
  switch (form) {
    case "uint16":
      return block.readUint16();
    case "uint32":
      return block.readUint32();
    case "variable":
      return block.readVariableInteger();
    default:
      return block.readByte();
  }
}
