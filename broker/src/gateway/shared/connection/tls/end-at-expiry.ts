import type { TLSSocket } from "node:tls";
import { certificateOf } from "../../../callers/client-certificate.ts";

/**
 * How long a connection may outlast its client's certificate, in milliseconds. In this time, the broker can first end the principal's connections and give the
 * reason.
 */
export const endAfterExpiryMs = 5_000;
/** Longest time between two checks, in milliseconds. A single timer would miss the expiry if somebody sets the clock. */
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
