import { createHash } from "node:crypto";
import type { ReceiverRule } from "../../../domain/receiver-pattern.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Metrics } from "../../../ports/metrics.ts";
import type { CallbackTarget } from "../../../ports/sink.ts";
import type { Reply } from "./handshake.ts";

/** Whether a receiver is asked. `try`: only its refusal counts. `require`: nothing is sent before it has agreed. */
export type ConsentMode = "off" | "try" | "require";

/** What holds for a url. */
export type Consent =
  | { readonly mayCall: true; readonly requestsPerMinuteMax?: number }
  /** `isRefused`: the receiver said so; else nobody was there to say anything. */
  | { readonly mayCall: false; readonly isRefused: boolean; readonly reason: string; readonly askAgainInMs: number };

export interface ConsentsOptions {
  readonly mode: ConsentMode;
  readonly isTrusted: ReceiverRule;
  readonly clock: Pick<Clock, "monotonic">;
  readonly metrics: Pick<Metrics, "consentAsked">;
  /** Asks the receiver. It never rejects. */
  readonly ask: (target: CallbackTarget, url: URL) => Promise<Reply>;
}

const minuteMs = 60_000;
/** How long an agreement holds, and in `try` the silence of a receiver that does not know the question. */
const agreedMsMax = 24 * 60 * minuteMs;
/** How long a refusal holds. */
const refusedMsMax = minuteMs;
/** How long a receiver that could not be reached is not asked again. */
const unreachableMsMax = 1000;
/** The same in `try`, where it is called meanwhile. */
const silentMsMax = 5 * minuteMs;
/** Urls whose consent is remembered; the one that was asked longest ago makes room, and is asked again. */
const consentsMax = 100_000;

/** Longest url that is a key itself; a longer one is known by its digest, so that what is remembered takes little memory. */
const keyCharactersMax = 128;

const yes: Consent = { mayCall: true };

interface Entry {
  readonly reply: Reply;
  readonly until: number;
}

/** Which receivers agreed to be called. It is remembered in memory: after a restart, each is asked before its next event. */
export class Consents {
  readonly #options: ConsentsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #underWay = new Map<string, Promise<Consent>>();

  constructor(options: ConsentsOptions) {
    this.#options = options;
  }

  /** What is known; undefined when the receiver has to be asked. */
  find(url: URL): Consent | undefined {
    if (this.#options.mode === "off" || this.#options.isTrusted(url)) return yes;
    const entry = this.#entries.get(keyOf(url));
    const leftMs = entry === undefined ? 0 : entry.until - this.#options.clock.monotonic();
    return entry === undefined || leftMs <= 0 ? undefined : this.#toConsent(entry.reply, leftMs);
  }

  /** Asks the receiver. Calls for one url that come at once ask once. */
  ask(target: CallbackTarget, url: URL): Promise<Consent> {
    const key = keyOf(url);
    const earlier = this.#underWay.get(key);
    if (earlier !== undefined) return earlier;
    const asking = this.#ask(target, url).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, asking);
    return asking;
  }

  async #ask(target: CallbackTarget, url: URL): Promise<Consent> {
    const { ask, clock, metrics } = this.#options;
    const reply = await ask(target, url);
    metrics.consentAsked(reply.kind);
    const heldMs = this.#heldMs(reply);
    const key = keyOf(url);
    this.#entries.delete(key);
    this.#entries.set(key, { reply, until: clock.monotonic() + heldMs });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > consentsMax && oldest !== undefined) this.#entries.delete(oldest);
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
  return href.length <= keyCharactersMax ? href : createHash("sha256").update(href).digest("base64");
}
