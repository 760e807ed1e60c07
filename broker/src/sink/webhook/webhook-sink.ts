import { isIP } from "node:net";
import { BrokerError } from "@stele/wire";
import { findReceiverRule, type ReceiverRule } from "../../domain/receiver-pattern.ts";
import { traceParentKey } from "../../domain/trace-parent.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import { KeyedSlots } from "../../lib/keyed-slots.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Metrics } from "../../ports/metrics.ts";
import type {
  AttemptOptions,
  AttemptOutcome,
  CallbackTarget,
  Notification,
  Sink,
  TestOutcome,
} from "../../ports/sink.ts";
import type { EventPlaces } from "../event-places.ts";
import { type AddressPolicy, type AddressPolicyOptions, createAddressPolicy } from "./address-policy.ts";
import { loopbackPortMin, portOf } from "./callback-ports.ts";
import { CallbackBodies, webhookIdOf } from "./callback-body.ts";
import { type CallbackUrl, hostOf, parseCallbackUrl } from "./callback-url.ts";
import type { CloudEventOptions } from "./cloud-event-body.ts";
import { type ConnectionLimits, type ConnectionRequest, laneKeyOf } from "./connections/connection-pool.ts";
import { type Consent, type ConsentMode, Consents } from "./consent/consents.ts";
import { createPing } from "./consent/ping.ts";
import { Questions } from "./consent/questions.ts";
import { describeFailure } from "./describe-failure.ts";
import type { ExchangeEnd } from "./exchange.ts";
import { createGuardedConnector, type Resolver } from "./guarded-connector.ts";
import { judgeAnswer, judgeTest } from "./judge-answer.ts";
import { findTrace, MessageHeaders } from "./message-headers.ts";
import { type Call, type CallSignals, cancelled, type Message, ReceiverCaller } from "./receiver-caller.ts";

export interface WebhookSinkOptions extends AddressPolicyOptions, ConnectionLimits {
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "consentAsked" | "watchCallbacks">;
  /** Timeout of one attempt, from its connection to the end of the answer. */
  readonly timeoutMs: number;
  /** Version of the product, for `user-agent`. */
  readonly version: string;
  /** Present if notifications include the place of their event on the chain. */
  readonly places?: EventPlaces;
  readonly cloudEvents: Pick<CloudEventOptions, "extensionPrefix" | "type">;
  /** How to resolve host names. */
  readonly resolver: Resolver;
  readonly consent: {
    readonly mode: ConsentMode;
    /** Receivers to call without asking for consent: origins, hosts, domains. */
    readonly trusted: readonly string[];
    /** The broker's name in requests for consent. */
    readonly origin: string;
  };
}

/** How long a new subscription waits for the look-up of its host name. */
const checkLookupMsMax = 3000;
/** How long a new subscription waits for its receiver's consent. A slower receiver does not fail the subscription: every attempt needs the consent. */
const checkConsentMsMax = 5000;
/** Approximate size of a test event. */
const testBytes = 512;

/** Creates a sink that calls receivers over HTTP. */
export function createWebhookSink(options: WebhookSinkOptions): Sink {
  return new WebhookSink(options);
}

/** What an attempt needs once its receiver's consent is known. */
interface Sending {
  readonly parsed: CallbackUrl & { readonly isGood: true };
  readonly consent: Consent;
  readonly signals: CallSignals & Pick<AttemptOptions, "onAnswer">;
}

class WebhookSink implements Sink {
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #bodies: CallbackBodies;
  readonly #headers: MessageHeaders;
  readonly #extensionPrefix: string;
  readonly #policy: AddressPolicy;
  readonly #resolver: Resolver;
  readonly #caller: ReceiverCaller;
  readonly #consents: Consents;
  /** Twice as many slots as connections, so that a request is ready whenever a connection is free. */
  readonly #slots: KeyedSlots<string>;
  readonly #urls = new WeakMap<CallbackTarget, CallbackUrl>();
  readonly #stopping = new AbortController();

  constructor(options: WebhookSinkOptions) {
    const { clock, metrics, consent } = options;
    this.#clock = clock;
    this.#timeoutMs = options.timeoutMs;
    this.#bodies = new CallbackBodies({ ...options.cloudEvents, places: options.places });
    this.#headers = new MessageHeaders(options);
    this.#extensionPrefix = options.cloudEvents.extensionPrefix;
    this.#policy = createAddressPolicy(options);
    this.#resolver = options.resolver;
    this.#slots = new KeyedSlots(2 * options.connectionsMax);
    this.#caller = new ReceiverCaller({
      ...options,
      connect: createGuardedConnector({ ...options, policy: this.#policy }),
    });
    const questions = new Questions({
      ...consent,
      caller: this.#caller,
      headers: this.#headers,
      signal: this.#stopping.signal,
    });
    this.#consents = new Consents({
      clock,
      metrics,
      mode: consent.mode,
      isTrusted: toTrustRule(consent.trusted),
      ask: (target, url) => questions.ask(target, url),
    });
    metrics.watchCallbacks(() => ({
      connections: this.#caller.connectionCount,
      waiting: this.#caller.waitingCount + this.#slots.waitingCount,
    }));
  }

  /**
   * Accepts a name that cannot be resolved now, and a receiver that cannot be reached: the receiver may be set up after its subscription. Every
   * attempt checks the address that it connects to, and the receiver's consent.
   */
  async checkTarget(target: CallbackTarget): Promise<void> {
    const parsed = parseCallbackUrl(target.url);
    if (!parsed.isGood) {
      throw new BrokerError("urlInvalid", {
        details: parsed.fault,
        ...(parsed.hint === undefined ? {} : { hints: [parsed.hint] }),
      });
    }
    await this.#checkAddress(parsed.url);
    const consent = this.#consents.find(target, parsed.url) ?? (await this.#askInTime(target, parsed.url));
    if (consent === undefined || consent.mayCall || !consent.isRefused) return;
    throw new BrokerError("receiverNotAgreed", {
      details: consent.reason,
      hints: [
        "The receiver agrees by the CloudEvents handshake; the setting STELE_CALLBACK_TRUSTED names receivers that need not.",
      ],
    });
  }

  /** Tens of thousands of attempts may wait for their turn, so this is not an async function: each would take 500 bytes more. */
  attempt(
    notification: Notification,
    signal: CancelSignal,
    { mayStart, stopping, onAnswer }: AttemptOptions = {},
  ): Promise<AttemptOutcome> {
    const { subscription } = notification;
    const parsed = this.#parseUrl(subscription);
    if (!parsed.isGood) return failed(`the url cannot be called: ${parsed.fault}`);
    if (signal.aborted) return failed(cancelled.message);
    if (this.#stopping.signal.aborted) return failed("the broker is stopping");
    const signals = { signal, stopping, mayStart, onAnswer };
    const consent = this.#consents.find(subscription, parsed.url);
    if (consent !== undefined) return this.#send(notification, { parsed, consent, signals });
    const asking = this.#consents.ask(subscription, parsed.url);
    return untilAborted(asking, ...(stopping === undefined ? [signal] : [signal, stopping])).then((answered) =>
      answered === undefined
        ? { status: "withheld" }
        : this.#send(notification, { parsed, consent: answered, signals }),
    );
  }

  enter(target: CallbackTarget, signal: CancelSignal): ReturnType<Sink["enter"]> {
    const parsed = this.#parseUrl(target);
    if (!parsed.isGood) return undefined;
    const { url, place } = parsed;
    const enter = (consent: Consent | undefined): ReturnType<Sink["enter"]> =>
      consent?.mayCall === true
        ? this.#slots.take(laneKeyOf({ origin: place.origin, rate: toRate(consent, url) }), signal)
        : undefined;
    const consent = this.#consents.find(target, url);
    return consent === undefined ? untilAborted(this.#consents.ask(target, url), signal).then(enter) : enter(consent);
  }

  async test(target: CallbackTarget, signal: CancelSignal, mayStart?: () => boolean): Promise<TestOutcome> {
    const parsed = this.#parseUrl(target);
    if (!parsed.isGood) return { outcome: toFailure(`the url cannot be called: ${parsed.fault}`), answer: undefined };
    const asked = this.#consents.find(target, parsed.url) ?? this.#consents.ask(target, parsed.url);
    const consent = asked instanceof Promise ? await untilAborted(asked, signal) : asked;
    if (consent === undefined) return { outcome: toFailure("the broker is stopping"), answer: undefined };
    if (!consent.mayCall) return { outcome: notAgreed(consent), answer: undefined };
    const call: Call = {
      ...parsed.place,
      method: "POST",
      bytes: testBytes,
      rate: toRate(consent, parsed.url),
      timeoutMs: this.#timeoutMs,
      message: createPing(target, this.#headers),
    };
    const end = await this.#caller.call(call, { signal, mayStart });
    if (end.kind !== "answered") {
      const reason = end.kind === "broken" ? describeFailure(end.error) : "it may not be sent any more";
      return { outcome: toFailure(reason), answer: undefined };
    }
    return { outcome: judgeTest(end.answer, { target, now: this.#clock.now() }), answer: end.answer };
  }

  #send(notification: Notification, { parsed, consent, signals }: Sending): Promise<AttemptOutcome> {
    if (!consent.mayCall) return Promise.resolve(notAgreed(consent));
    const { origin, path } = parsed.place;
    const call: Call = {
      origin,
      path,
      method: "POST",
      bytes: this.#bodies.bytesOf(notification),
      rate: toRate(consent, parsed.url),
      timeoutMs: this.#timeoutMs,
      message: () => this.#toMessage(notification),
    };
    return this.#caller.call(call, signals).then((end) => {
      if (end.kind === "answered") signals.onAnswer?.(end.answer);
      return this.#judge(end, notification);
    });
  }

  #toMessage(notification: Notification): Message {
    const { headers: ofBody, body } = this.#bodies.encode(notification);
    const headers = this.#headers.ofMessage(notification.subscription, { id: webhookIdOf(notification), body });
    Object.assign(headers, ofBody);
    const trace = findTrace(notification, this.#extensionPrefix);
    if (trace !== undefined) headers[traceParentKey] = trace;
    return { headers, body };
  }

  #judge(end: ExchangeEnd, notification: Notification): AttemptOutcome {
    if (end.kind === "withheld") return { status: "withheld" };
    if (end.kind === "broken") return { status: "failed", reason: describeFailure(end.error) };
    return judgeAnswer(end.answer, { notification, now: this.#clock.now() });
  }

  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    await this.#caller.stop(graceMs);
  }

  /** Parses each target once: the target is the same object as long as its subscription is delivered. */
  #parseUrl(target: CallbackTarget): CallbackUrl {
    const known = this.#urls.get(target);
    if (known !== undefined) return known;
    const parsed = parseCallbackUrl(target.url);
    this.#urls.set(target, parsed);
    return parsed;
  }

  async #checkAddress(url: URL): Promise<void> {
    const [host, port] = [hostOf(url), portOf(url)];
    const addresses = await this.#findAddresses(host);
    if (addresses.length === 0 || addresses.some((address) => this.#policy(address, port))) return;
    if (addresses.some((address) => this.#policy(address, loopbackPortMin))) {
      const details = `callbacks may not reach loopback port ${port}, only ports from ${loopbackPortMin} on`;
      throw new BrokerError("urlInvalid", { details });
    }
    // Does not reveal the addresses of a name: names may be private too.
    const address = isIP(host) === 0 ? "the host's addresses" : `the address ${host}`;
    throw new BrokerError("urlInvalid", {
      details: `callbacks may not reach ${address}`,
      hints: ["The setting STELE_CALLBACK_ALLOW allows callbacks to private networks."],
    });
  }

  /** The addresses of a host; none if they cannot be resolved in time. */
  async #findAddresses(host: string): Promise<readonly string[]> {
    if (isIP(host) !== 0) return [host];
    const lookup = this.#resolver(host).catch(() => []);
    return (await this.#within(checkLookupMsMax, lookup)) ?? [];
  }

  #askInTime(target: CallbackTarget, url: URL): Promise<Consent | undefined> {
    return this.#within(checkConsentMsMax, this.#consents.ask(target, url));
  }

  async #within<T>(limitMs: number, promise: Promise<T>): Promise<T | undefined> {
    const deadline = new AbortController();
    const cancelTimer = this.#clock.after(limitMs, () => deadline.abort());
    try {
      return await untilAborted(promise, deadline.signal);
    } finally {
      cancelTimer();
    }
  }
}

function failed(reason: string): Promise<AttemptOutcome> {
  return Promise.resolve(toFailure(reason));
}

function toFailure(reason: string): AttemptOutcome & { readonly status: "failed" } {
  return { status: "failed", reason };
}

function toTrustRule(patterns: readonly string[]): ReceiverRule {
  const rules = patterns.map(findReceiverRule).filter((rule) => rule !== undefined);
  return (url) => rules.some((rule) => rule(url));
}

function toRate(
  { requestsPerMinuteMax }: Consent & { readonly mayCall: true },
  { href }: URL,
): ConnectionRequest["rate"] {
  return requestsPerMinuteMax === undefined ? undefined : { url: href, requestsPerMinuteMax };
}

function notAgreed({ reason, isRefused, askAgainInMs }: Consent & { readonly mayCall: false }) {
  return {
    status: "failed" as const,
    reason: `the receiver did not agree to be called: ${reason}`,
    ...(isRefused ? { retryAfterMs: askAgainInMs } : {}),
  };
}
