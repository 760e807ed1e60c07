import type { Clock } from "../../ports/clock.ts";
import type { CallbackTarget } from "../../ports/sink.ts";
import { signMessage } from "../../lib/webhook-signature.ts";

/** Headers of requests to receivers (Standard Webhooks 1.0). */
export class MessageHeaders {
  /** Headers of every request. */
  readonly common: Readonly<Record<string, string>>;
  readonly #clock: Pick<Clock, "now">;

  constructor({ clock, version }: { readonly clock: Pick<Clock, "now">; readonly version: string }) {
    this.#clock = clock;
    this.common = { accept: "application/json", "user-agent": `stele/${version}` };
  }

  /** Headers of a message sent now; signed if the subscription has a secret. */
  sign({ secret }: Pick<CallbackTarget, "secret">, message: { readonly id: string; readonly body: Buffer }) {
    const timestampSeconds = Math.floor(this.#clock.now() / 1000);
    const headers = {
      "content-type": "application/json",
      ...this.common,
      "webhook-id": message.id,
      "webhook-timestamp": String(timestampSeconds),
    };
    if (secret === undefined) return headers;
    return { ...headers, "webhook-signature": signMessage(secret, { ...message, timestampSeconds }) };
  }
}
