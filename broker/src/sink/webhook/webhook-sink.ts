import { setMaxListeners } from "node:events";
import { isIP } from "node:net";
import { BrokerError } from "@stele/wire";
import { Agent } from "undici";
import type { Clock } from "../../ports/clock.ts";
import type { AttemptOptions, AttemptOutcome, Notification, Sink } from "../../ports/sink.ts";
import type { EventPlaces } from "../event-places.ts";
import { type AddressPolicy, type AddressPolicyOptions, createAddressPolicy } from "./address-policy.ts";
import { AttemptError } from "./attempt-error.ts";
import { loopbackPortMin, portOf } from "./callback-ports.ts";
import { hostOf, parseCallbackUrl } from "./callback-url.ts";
import { describeFailure } from "./describe-failure.ts";
import { Exchange } from "./exchange.ts";
import { createGuardedConnector, type Resolver, shareLookups, systemResolver } from "./guarded-connector.ts";
import { judgeAnswer } from "./judge-answer.ts";
import { NotificationEncoder } from "./notification-body.ts";
import { signMessage } from "./signature.ts";

export interface WebhookSinkOptions extends AddressPolicyOptions {
  readonly clock: Clock;
  /** Time for one attempt, from waiting for a connection to the end of the answer. */
  readonly timeoutMs: number;
  /** Connections to one receiver (scheme, host and port). */
  readonly connectionsMax: number;
  /** Version of the product, for `user-agent`. */
  readonly version: string;
  /** Given where notifications are to carry the place of their event on the chain. */
  readonly places?: EventPlaces;
  /** How host names are looked up; as the machine does unless given. */
  readonly resolver?: Resolver;
}

/** Bytes of an answer that are read; the connection is dropped beyond. */
const answerBytesMax = 65_536;
/** Bytes of an answer's headers. */
const answerHeaderBytesMax = 16_384;
/** How long a new subscription waits for its host name to be looked up. */
const checkLookupMsMax = 3000;

/** Calls receivers over HTTP, as DESIGN section 7 has it. */
export function createWebhookSink(options: WebhookSinkOptions): Sink {
  return new WebhookSink(options);
}

class WebhookSink implements Sink {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #userAgent: string;
  readonly #encoder: NotificationEncoder;
  readonly #policy: AddressPolicy;
  readonly #resolver: Resolver;
  readonly #agent: Agent;
  readonly #underWay = new Set<Exchange>();
  #isStopped = false;

  constructor(options: WebhookSinkOptions) {
    this.#clock = options.clock;
    this.#timeoutMs = options.timeoutMs;
    this.#userAgent = `stele/${options.version}`;
    this.#encoder = new NotificationEncoder(options.places);
    this.#policy = createAddressPolicy(options);
    this.#resolver = shareLookups(options.resolver ?? systemResolver);
    this.#agent = new Agent({
      connect: createGuardedConnector({
        policy: this.#policy,
        resolver: this.#resolver,
        timeoutMs: options.timeoutMs,
      }),
      connections: options.connectionsMax,
      maxHeaderSize: answerHeaderBytesMax,
      // The deadline of the attempt covers both.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * A name that cannot be looked up now is let through: a receiver may be set up after its subscription, and every attempt checks the
   * address it connects to.
   */
  async checkUrl(text: string): Promise<void> {
    const parsed = parseCallbackUrl(text);
    if (!parsed.isGood) {
      throw new BrokerError("urlInvalid", {
        details: parsed.fault,
        ...(parsed.hint === undefined ? {} : { hints: [parsed.hint] }),
      });
    }
    const host = hostOf(parsed.url);
    const addresses = await this.#findAddresses(host);
    const port = portOf(parsed.url);
    if (addresses.length === 0 || addresses.some((address) => this.#policy(address, port))) return;
    if (addresses.some((address) => this.#policy(address, loopbackPortMin))) {
      const details = `port ${port} of loopback is one that callbacks may not reach; those from ${loopbackPortMin} on are open`;
      throw new BrokerError("urlInvalid", { details });
    }
    // Of a name, the caller is not told where it leads: names may be private too.
    const place = isIP(host) === 0 ? "the host leads to an address" : `${host} is an address`;
    throw new BrokerError("urlInvalid", {
      details: `${place} that callbacks may not reach`,
      hints: ["The setting STELE_CALLBACK_ALLOW opens private networks to callbacks."],
    });
  }

  async attempt(
    notification: Notification,
    signal: AbortSignal,
    { mayStart }: AttemptOptions = {},
  ): Promise<AttemptOutcome> {
    const parsed = parseCallbackUrl(notification.subscription.url);
    if (!parsed.isGood) return { status: "failed", reason: `the url cannot be called: ${parsed.fault}` };
    if (this.#isStopped || signal.aborted) return { status: "failed", reason: "the broker is stopping" };

    const exchange = new Exchange({ bodyBytesMax: answerBytesMax, mayStart });
    const cancelTimer = this.#clock.after(this.#timeoutMs, () => {
      exchange.cancel(new AttemptError(`the deadline of ${this.#timeoutMs} ms passed`));
    });
    const onAbort = () => exchange.cancel(new AttemptError("the broker is stopping"));
    setMaxListeners(0, signal); // One signal may stand over every attempt of the node.
    signal.addEventListener("abort", onAbort, { once: true });
    this.#underWay.add(exchange);
    try {
      this.#send(exchange, { notification, url: parsed.url });
      const end = await exchange.end;
      if (end.kind === "withheld") return { status: "withheld" };
      if (end.kind === "broken") return { status: "failed", reason: describeFailure(end.error) };
      return judgeAnswer(end.answer, { notification, now: this.#clock.now() });
    } finally {
      this.#underWay.delete(exchange);
      signal.removeEventListener("abort", onAbort);
      cancelTimer();
    }
  }

  /** Waits for the attempts under way, each of which has its deadline, then closes every connection. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#underWay].map((exchange) => exchange.end));
    await this.#agent.destroy();
  }

  #send(exchange: Exchange, { notification, url }: { notification: Notification; url: URL }): void {
    const body = this.#encoder.encode(notification);
    const request = {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: "POST",
      headers: this.#headersOf(notification, body),
      body,
    } as const;
    this.#agent.dispatch(request, exchange);
  }

  #headersOf({ subscription, eventId }: Notification, body: Buffer): Record<string, string> {
    const timestampSeconds = Math.floor(this.#clock.now() / 1000);
    const headers = {
      "content-type": "application/json",
      accept: "application/json",
      "user-agent": this.#userAgent,
      "webhook-id": eventId,
      "webhook-timestamp": String(timestampSeconds),
    };
    if (subscription.secret === undefined) return headers;
    return {
      ...headers,
      "webhook-signature": signMessage(subscription.secret, { id: eventId, timestampSeconds, body }),
    };
  }

  /** The addresses of a host; none when they cannot be learned in time. */
  async #findAddresses(host: string): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host];
    return await new Promise((resolve) => {
      const cancelTimer = this.#clock.after(checkLookupMsMax, () => resolve([]));
      void this.#resolver(host)
        .catch(() => [])
        .then(resolve)
        .finally(cancelTimer);
    });
  }
}
