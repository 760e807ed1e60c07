import type { TLSSocket } from "node:tls";
import { certificateOf } from "../../../callers/client-certificate.ts";

/** How long a connection outlasts the client's certificate, in milliseconds: time for the broker to end the connections of the principal and say why. */
export const endAfterExpiryMs = 5_000;
/** Longest time between two checks, in milliseconds: somebody may set the clock. */
const checkIntervalMs = 3_600_000;

/** Ends a connection after its client's certificate has expired. Nothing else ends it if the client uses an API key, or if access control is off. */
export function endAtExpiry(socket: TLSSocket): void {
  const validTo = certificateOf(socket)?.validTo;
  if (validTo === undefined || Number.isNaN(validTo)) return;
  let timer: NodeJS.Timeout | undefined;
  const check = (): void => {
    const leftMs = validTo + endAfterExpiryMs - Date.now();
    if (leftMs <= 0) socket.destroy();
    else timer = setTimeout(check, Math.min(leftMs, checkIntervalMs)).unref();
  };
  socket.once("close", () => clearTimeout(timer));
  check();
}
