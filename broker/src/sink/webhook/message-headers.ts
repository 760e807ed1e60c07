import { validSecrets } from "../../domain/signing-secret.ts";
import { findTraceParent, traceParentKey } from "../../domain/trace-parent.ts";
import type { Clock } from "../../ports/clock.ts";
import type { CallbackTarget, Notification } from "../../ports/sink.ts";
import { signMessage } from "../../lib/webhook-signature.ts";

/** Headers of requests to receivers (Standard Webhooks 1.0). */
export class MessageHeaders {
  /** Headers of every request; a message also has its content type. */
  readonly common: Readonly<Record<string, string>>;
  readonly #clock: Pick<Clock, "now">;

  constructor({ clock, version }: { readonly clock: Pick<Clock, "now">; readonly version: string }) {
    this.#clock = clock;
    this.common = { accept: "application/json", "user-agent": `stele/${version}` };
  }

  /** Headers of a message sent now; signed if the subscription has a secret, and with both secrets during a rotation. */
  sign({ secret }: Pick<CallbackTarget, "secret">, message: { readonly id: string; readonly body: Buffer }) {
    const now = this.#clock.now();
    const timestampSeconds = Math.floor(now / 1000);
    const headers = {
      ...this.common,
      "webhook-id": message.id,
      "webhook-timestamp": String(timestampSeconds),
    };
    if (secret === undefined) return headers;
    const signatures = validSecrets(secret, now).map((one) => signMessage(one, { ...message, timestampSeconds }));
    return { ...headers, "webhook-signature": signatures.join(" ") };
  }
}

/** The W3C trace of the attempt, or of the event. The events of a batch have traces of their own, which are in the body. */
export function toTraceHeader(notification: Notification, prefix: string): Readonly<Record<string, string>> {
  const { event, batch, traceParent } = notification;
  const trace = traceParent ?? (batch === undefined ? findTraceParent(event.extensions, prefix) : undefined);
  return trace === undefined ? {} : { [traceParentKey]: trace };
}
