import { quote } from "@stele/wire";
import { findRepeatedName } from "./repeated-name.ts";

/** An object in a JSON text has a name twice. `JSON.parse` silently keeps only the last of these members, so a role could lose its rules that deny. */
export class RepeatedName extends Error {
  override readonly name = "RepeatedName";

  constructor(repeated: string) {
    super(`an object has the name ${quote(repeated)} twice, and only the last would count`);
  }
}

/** @throws SyntaxError when the text is not JSON; RepeatedName. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  const repeated = findRepeatedName(text);
  if (repeated !== undefined) throw new RepeatedName(repeated);
  return value;
}

/** Parses JSON. Returns any other text unchanged: the schema of the value refuses it, because it is neither an object nor an array. @throws RepeatedName. */
export function decodeJson(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof RepeatedName) throw error;
    return text;
  }
}
