import { types } from "pg";

/** Oids of built-in types (pg_type.dat in PostgreSQL's sources). */
const oid = { bytea: 17, int8: 20 } as const;

const parseBytes: (text: string) => Buffer = types.getTypeParser(oid.bytea, "text");

/**
 * Converts values of the database, only on the connections of the broker's pools. Integers of eight bytes become numbers, which hold every count and
 * position up to 2^53 - 1. Bytes become plain arrays, as SQLite returns them.
 */
export const valueTypes: { readonly getTypeParser: typeof types.getTypeParser } = {
  // The declared signature has overloads by literal types, which no function expression can satisfy.
  getTypeParser: ((id: number, format?: "text" | "binary") => {
    if (format !== "binary" && id === oid.int8) return parseInteger;
    if (format !== "binary" && id === oid.bytea) return parsePlainBytes;
    return types.getTypeParser(id, format);
  }) as typeof types.getTypeParser,
};

function parseInteger(text: string): number {
  const value = Number(text);
  // The store writes no such number: the row is damaged. errors.ts recognises the message.
  if (!Number.isSafeInteger(value)) throw new Error(`the database has ${text} where at most 2^53 - 1 is allowed`);
  return value;
}

function parsePlainBytes(text: string): Uint8Array {
  const bytes = parseBytes(text);
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
