import { isUtf8 } from "node:buffer";
import { parameterError } from "./failure.ts";

/** Bytes as text. @throws BrokerError 200001 when they are not UTF-8. */
export function decodeUtf8(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw parameterError("the body is not valid UTF-8");
  return bytes.toString("utf8");
}

/** Parses JSON. @throws BrokerError 200001 when it is not JSON in UTF-8; the message quotes nothing of the text. */
export function parseJson(bytes: Buffer): unknown {
  const text = decodeUtf8(bytes);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw parameterError("the body is not valid JSON", cause);
  }
}

/** Returns the text. @throws BrokerError 200001 for half a surrogate pair, which has no UTF-8 form and would come back as another character. */
export function checkWellFormed(text: string, name: string): string {
  if (/\p{Surrogate}/u.test(text)) throw parameterError(`"${name}" holds half of a surrogate pair`);
  return text;
}

/** True for a JSON object; false for arrays and null. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
