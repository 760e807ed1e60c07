import { createHash } from "node:crypto";
import type { ReceiverRule } from "../../../domain/receiver-pattern.ts";
import { BoundedMap } from "../../../lib/bounded-map.ts";
import { SharedCalls } from "../../../lib/shared-calls.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Metrics } from "../../../ports/metrics.ts";
import type { CallbackTarget } from "../../../ports/sink.ts";
import type { Reply } from "./handshake.ts";

/** Whether receivers are asked for consent. `try`: call unless the receiver refuses. `require`: send nothing before it agrees. */
export type ConsentMode = "off" | "try" | "require";

/** Known consent for a url. */
export type Consent =
  | { readonly mayCall: true; readonly requestsPerMinuteMax?: number }
  /** `isRefused`: true if the receiver refused, false if the broker could not reach it. */
  | { readonly mayCall: false; readonly isRefused: boolean; readonly reason: string; readonly askAgainInMs: number };

export interface ConsentsOptions {
  readonly mode: ConsentMode;
  readonly isTrusted: ReceiverRule;
  readonly clock: Pick<Clock, "monotonic">;
  readonly metrics: Pick<Metrics, "consentAsked">;
  /** Asks the receiver. Never rejects. */
  readonly ask: (target: CallbackTarget, url: URL) => Promise<Reply>;
}

const minuteMs = 60_000;
/** How long a consent is valid. In `try`, also how long a receiver without the handshake may be called before it is asked again. */
const agreedMsMax = 24 * 60 * minuteMs;
/** How long a receiver's refusal to be called is valid. */
const refusedMsMax = minuteMs;
/** How long to wait in `require` before an unreachable receiver is asked again. */
const unreachableMsMax = 1000;
/** How long to wait in `try` before an unreachable receiver is asked again; it may be called meanwhile. */
const silentMsMax = 5 * minuteMs;
/** Maximum number of cached answers; above it, the cache drops the oldest one, and the broker asks that receiver again. */
const consentsMax = 100_000;

/** Maximum length of a url that is itself a key of the cache, in characters. For a longer one the key is its digest, to save memory. */
const keyCharactersMax = 128;

const yes: Consent = { mayCall: true };

interface Entry {
  readonly reply: Reply;
  readonly until: number;
}

/** Caches which receivers agreed to be called. Only in memory: after a restart, the broker asks each receiver before its next event. */
export class Consents {
  readonly #options: ConsentsOptions;
  readonly #entries = new BoundedMap<string, Entry>(consentsMax);
  readonly #asking = new SharedCalls<string, Consent>();

  constructor(options: ConsentsOptions) {
    this.#options = options;
  }

  /** The known consent; undefined if the receiver must be asked. */
  find(target: CallbackTarget, url: URL): Consent | undefined {
    const { mode } = this.#options;
    if (mode === "off" || this.#options.isTrusted(url)) return yes;
    const known = this.#findEntry(keyOf(url));
    return known === undefined && mode === "require" ? this.#findEntry(pingKeyOf(target, url)) : known;
  }

  #findEntry(key: string): Consent | undefined {
    const entry = this.#entries.get(key);
    const leftMs = entry === undefined ? 0 : entry.until - this.#options.clock.monotonic();
    return entry === undefined || leftMs <= 0 ? undefined : this.#toConsent(entry.reply, leftMs);
  }

  /** Asks the receiver. Concurrent calls for one url share a request; in `require`, only if their pings have the same form and secret. */
  ask(target: CallbackTarget, url: URL): Promise<Consent> {
    const key = this.#options.mode === "require" ? pingKeyOf(target, url) : keyOf(url);
    return this.#asking.run(key, () => this.#ask(target, url));
  }

  async #ask(target: CallbackTarget, url: URL): Promise<Consent> {
    const { ask, clock, metrics } = this.#options;
    const reply = await ask(target, url);
    metrics.consentAsked(reply.kind);
    const heldMs = this.#heldMs(reply);
    // An answer to a ping counts only for pings of the same subscriber. Otherwise a subscriber with a wrong secret could make the broker refuse others.
    const key = "isToPing" in reply ? pingKeyOf(target, url) : keyOf(url);
    this.#entries.set(key, { reply, until: clock.monotonic() + heldMs });
    return this.#toConsent(reply, heldMs);
  }

  #heldMs({ kind }: Reply): number {
    if (kind === "refused") return refusedMsMax;
    if (kind === "unreachable") return this.#options.mode === "try" ? silentMsMax : unreachableMsMax;
    return agreedMsMax;
  }

  #toConsent(reply: Reply, askAgainInMs: number): Consent {
    if (reply.kind === "agreed") return { mayCall: true, ...reply };
    const isRefused = reply.kind === "refused";
    if (!isRefused && this.#options.mode === "try") return yes;
    return { mayCall: false, isRefused, reason: reply.reason, askAgainInMs };
  }
}

function keyOf({ href }: URL): string {
  return href.length <= keyCharactersMax ? href : toDigest(href);
}

/** The key of an answer to a ping: the same for all pings to a url with the same form and secret, whatever their identifiers. */
function pingKeyOf({ format, options, secret }: CallbackTarget, { href }: URL): string {
  return toDigest(JSON.stringify([href, format, options?.form, secret]));
}

function toDigest(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
