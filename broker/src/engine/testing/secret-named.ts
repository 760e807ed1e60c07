import { secretBytesMin, toSecret } from "../../domain/signing-secret.ts";

/** A valid secret, which differs for each short name. */
export function secretNamed(name: string): string {
  return toSecret(Buffer.from(name.padEnd(secretBytesMin, "-")));
}
