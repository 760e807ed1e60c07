import { parameterError } from "../shared/failure.ts";

/**
 * Decodes strict Base64 (RFC 4648, section 4): standard alphabet, padding, unused bits zero, nothing else. Node's decoder skips unknown characters,
 * so the bytes are encoded again and compared with the text.
 * @throws BrokerError 200001 naming the parameter.
 */
export function decodeBase64(text: string, name: string): Uint8Array {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) {
    throw parameterError(`"${name}" is not Base64 with the standard alphabet and padding`);
  }
  return bytes;
}
