import { parameterError } from "../shared/failure.ts";

/**
 * Decodes Base64 as RFC 4648, section 4, has it: standard alphabet, padding, unused bits zero, nothing else. Node's decoder skips what
 * it does not know, so the text must be the one that its bytes encode to.
 * @throws BrokerError 200001 naming the parameter.
 */
export function decodeBase64(text: string, name: string): Uint8Array {
  const bytes = Buffer.from(text, "base64");
  if (bytes.toString("base64") !== text) {
    throw parameterError(`"${name}" is not Base64 with the standard alphabet and padding`);
  }
  return bytes;
}
