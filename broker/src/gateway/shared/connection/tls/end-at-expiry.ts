import type { TLSSocket } from "node:tls";
import { certificateOf } from "../../../callers/client-certificate.ts";

/** How long a connection outlasts the client's certificate, in milliseconds. In this time access ends the connections of its principal, and says why. */
export const endAfterExpiryMs = 5_000;
/** Longest pause between two looks at the clock, in milliseconds: somebody may set the clock. */
const lookEveryMs = 3_600_000;

/** Ends a connection whose client's certificate has expired: also that of a client with a key, which is nobody else's concern, and while access is off. */
export function endAtExpiry(socket: TLSSocket): void {
  const validTo = certificateOf(socket)?.validTo;
  if (validTo === undefined || Number.isNaN(validTo)) return;
  let timer: NodeJS.Timeout | undefined;
  const look = (): void => {
    const leftMs = validTo + endAfterExpiryMs - Date.now();
    if (leftMs <= 0) socket.destroy();
    else timer = setTimeout(look, Math.min(leftMs, lookEveryMs)).unref();
  };
  socket.once("close", () => clearTimeout(timer));
  look();
}
