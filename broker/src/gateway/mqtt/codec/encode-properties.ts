import { type ByteWriter, variableIntegerBytes } from "./byte-writer.ts";
import { type Properties, type PropertyRule, propertyRules, type UserProperty } from "./properties.ts";

type Write = (writer: ByteWriter) => void;

/** Encoded properties, with their length in bytes before them. */
export interface EncodedProperties {
  /** Includes the bytes of the length itself. */
  readonly byteLength: number;
  readonly write: Write;
}

const none: EncodedProperties = { byteLength: 1, write: (writer) => writer.writeVariableInteger(0) };

/** Values must be in range; strings in UTF-8 and binary values must have at most 65,535 bytes. */
export function encodeProperties(properties: Properties): EncodedProperties {
  const parts: Part[] = [];
  for (const rule of propertyRules) {
    const value = properties[rule.name];
    if (value !== undefined) parts.push(...toParts(rule, value));
  }
  if (parts.length === 0) return none;
  const length = parts.reduce((sum, { byteLength }) => sum + byteLength + 1, 0);
  const write: Write = (writer) => {
    writer.writeVariableInteger(length);
    for (const part of parts) {
      writer.writeByte(part.id);
      part.write(writer);
    }
  };
  return { byteLength: variableIntegerBytes(length) + length, write };
}

/** One value; `byteLength` is without its identifier, which takes one byte. */
interface Part {
  readonly id: number;
  readonly byteLength: number;
  readonly write: Write;
}

/** The form in the rule determines the type of the value, so the casts are safe. */
function toParts(rule: PropertyRule, value: NonNullable<Properties[keyof Properties]>): Part[] {
  const { id, form } = rule;
  if (form === "pair") return (value as readonly UserProperty[]).map((pair) => toPairPart(id, pair));
  if (form === "variable") return (value as readonly number[]).map((number) => toVariablePart(id, number));
  if (form === "string") return [toStringPart(id, value as string)];
  if (form === "binary") return [toBinaryPart(id, value as Buffer)];
  return [toNumberPart(id, form, value as number)];
}

function toPairPart(id: number, [name, value]: UserProperty): Part {
  const first = toStringPart(id, name);
  const second = toStringPart(id, value);
  return {
    id,
    byteLength: first.byteLength + second.byteLength,
    write: (writer) => {
      first.write(writer);
      second.write(writer);
    },
  };
}

function toStringPart(id: number, text: string): Part {
  const length = Buffer.byteLength(text);
  return { id, byteLength: length + 2, write: (writer) => writer.writeString(text, length) };
}

function toBinaryPart(id: number, bytes: Buffer): Part {
  return { id, byteLength: bytes.length + 2, write: (writer) => writer.writeBinary(bytes) };
}

function toVariablePart(id: number, number: number): Part {
  return { id, byteLength: variableIntegerBytes(number), write: (writer) => writer.writeVariableInteger(number) };
}

function toNumberPart(id: number, form: "flag" | "uint16" | "uint32", number: number): Part {
  if (form === "flag") return { id, byteLength: 1, write: (writer) => writer.writeByte(number) };
  if (form === "uint16") return { id, byteLength: 2, write: (writer) => writer.writeUint16(number) };
  return { id, byteLength: 4, write: (writer) => writer.writeUint32(number) };
}
