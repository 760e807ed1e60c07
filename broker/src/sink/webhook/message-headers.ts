import { validSecrets } from "../../domain/signing-secret.ts";
import { findTraceParent } from "../../domain/trace-parent.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CallbackTarget, Notification } from "../../ports/sink.ts";
import { signMessage } from "../../lib/webhook-signature.ts";

/** Headers of requests to receivers (Standard Webhooks 1.0). */
export class MessageHeaders {
  /** Headers that every request to a receiver has. */
  readonly common: Readonly<Record<"accept" | "user-agent", string>>;
  readonly #clock: Pick<Clock, "now">;

  constructor({ clock, version }: { readonly clock: Pick<Clock, "now">; readonly version: string }) {
    this.#clock = clock;
    this.common = { accept: "application/json", "user-agent": `stele/${version}` };
  }

  /** Headers of a message that is sent now, without its content type. If the subscription has a secret, they include a signature; during a rotation, two. */
  ofMessage({ secret }: Pick<CallbackTarget, "secret">, message: { readonly id: string; readonly body: Buffer }) {
    const now = this.#clock.now();
    const timestampSeconds = Math.floor(now / 1000);
    // Spreading `common` would take 2 µs.
    const headers: Record<string, string> = {
      accept: this.common.accept,
      "user-agent": this.common["user-agent"],
      "webhook-id": message.id,
      "webhook-timestamp": String(timestampSeconds),
    };
    if (secret === undefined) return headers;
    const signatures = validSecrets(secret, now).map((one) => signMessage(one, { ...message, timestampSeconds }));
    headers["webhook-signature"] = signatures.join(" ");
    return headers;
  }
}

/** The W3C `traceparent` of the attempt; without one, that of the event. A batch has no single event: its body has the `traceparent` of each. */
export function findTrace({ event, batch, traceParent }: Notification, prefix: string): string | undefined {
  return traceParent ?? (batch === undefined ? findTraceParent(event.extensions, prefix) : undefined);
}
