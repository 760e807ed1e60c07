import type { Logger } from "../lib/logger.ts";
import { pause } from "../lib/pause.ts";
import { ReportedTrouble } from "../lib/reported-trouble.ts";
import type { Clock } from "../ports/clock.ts";
import { type IssuerKey, parseIssuerKeys } from "./issuer-keys.ts";
import { isKeyUrl } from "./key-source.ts";

/** Pause between two reads of a file with keys. */
const fileReadEveryMs = 1_000;
/** Longest pause after a failed read or fetch, and while an issuer has no usable key. */
const retryMs = 5_000;
/** Pause between two fetches of keys. A key that its issuer removes stays trusted until the next fetch. */
const fetchEveryMs = 60_000;
/** Minimum time since the last read before a token with an unknown key causes another read. */
const earlyFetchMs = 5_000;
/**
 * Maximum number of tokens with an unknown key that wait at once until their issuer's keys are read. Anybody can make such tokens, and an issuer may hang;
 * tokens of other issuers, and with known keys, must still be verified.
 */
const waitingMax = 200;
/** How long a read may take, in milliseconds, before it counts as failed. A fetch ends earlier, but nothing ends a read of a disk that hangs. */
const readMsMax = 10_000;
/**
 * The broker believes that an issuer has no usable key only if a second read, at least this many milliseconds later, shows the same: an issuer that restarts
 * may publish an empty set for a moment. Less than `retryMs`, so that the next regular read can confirm it.
 */
const confirmedMs = 4_000;
/** How long the broker trusts the known keys while it cannot read them again. */
export const keysTrustedMsMax = 3_600_000;

const unreadable = "the keys of the token's issuer cannot be read at the moment";

const noneUsable =
  "has no usable public key for signatures: each key is too short, of an unknown type or for another use, or there is none";

const unconfirmed =
  "it has no usable public key for signatures; the known keys count until another read shows the same";

export interface IssuerOptions {
  readonly issuer: string;
  readonly audience: readonly string[];
  readonly algorithms: readonly string[];
  /** Path or URL of a JWK set, or path of a public key in PEM. */
  readonly keys: string;
}

export interface IssuerDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Reads the document at a place. */
  readonly read: (place: string, signal: AbortSignal) => Promise<string>;
}

/** The keys of one issuer, kept up to date. */
export class Issuer {
  readonly options: IssuerOptions;
  readonly #parts: IssuerDependencies;
  readonly #trouble: ReportedTrouble;
  /** Set while the issuer has no usable key, as two reads have shown. The keys can be read, so the verifier refuses every token of the issuer. */
  readonly #withdrawal: ReportedTrouble;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #refreshing: Promise<void> | undefined;
  /** The read that is under way, even if it hangs. */
  #reading: Promise<void> | undefined;
  /** Whether that read has taken longer than `readMsMax`. */
  #isHanging = false;
  /** The document of the known keys; undefined before the first. */
  #text: string | undefined;
  #keys: readonly IssuerKey[] = [];
  #thumbprints: ReadonlySet<string> = new Set();
  /** When the last successful read began, on the monotonic clock; undefined before the first. */
  #readAt: number | undefined;
  /** When a read first showed a set without a usable key, on the monotonic clock; undefined once a set has one. */
  #emptyAt: number | undefined;
  #triedAt = 0;
  #waiting = 0;
  /** Whether the known keys were trusted at the last check. */
  #wasTrusted = false;
  #onChanged: () => void = () => {};

  constructor(options: IssuerOptions, parts: IssuerDependencies) {
    this.options = options;
    this.#parts = parts;
    const logger = parts.logger.child({ issuer: options.issuer, keys: options.keys });
    this.#trouble = new ReportedTrouble(
      logger,
      "keys of a token issuer cannot be read",
      "keys of a token issuer can be read again",
    );
    this.#withdrawal = new ReportedTrouble(
      logger,
      "a token issuer has no usable key",
      "a token issuer has a usable key again",
    );
  }

  /** Calls `onChanged` when a read shows that a key was removed, and when the last successful read is too old for its keys to be trusted. */
  async start(onChanged: () => void): Promise<void> {
    this.#onChanged = onChanged;
    await this.#refresh();
    this.#checkTrust();
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  trusts(thumbprint: string): boolean {
    return this.#thumbprints.has(thumbprint) && this.findFault() === undefined;
  }

  /** Why no token of this issuer can be judged; undefined if tokens can be judged. */
  findFault(): string | undefined {
    const isTrusted = this.#readAt !== undefined && this.#parts.clock.monotonic() - this.#readAt <= keysTrustedMsMax;
    return isTrusted ? undefined : unreadable;
  }

  /** Why a token that fits no known key cannot be judged: the issuer may have published its key since the last successful read. Undefined if it can. */
  findFaultOfUnknown(): string | undefined {
    return this.#trouble.reason === undefined ? undefined : unreadable;
  }

  /** A warning for the operator; undefined if there is none. */
  findWarning(): string | undefined {
    const { issuer, keys } = this.options;
    const { reason } = this.#trouble;
    if (reason !== undefined) return `the keys of the token issuer ${issuer} cannot be read at ${keys}: ${reason}`;
    const { reason: withdrawn } = this.#withdrawal;
    return withdrawn === undefined ? undefined : `no token of the issuer ${issuer} is accepted: ${keys} ${withdrawn}`;
  }

  /**
   * Keys that may have signed a token with this key identifier. If there are none, reads the keys again, but not too often, and does not wait for a read that
   * hangs. Undefined if too many tokens wait for that read.
   */
  async candidates(kid: string | undefined): Promise<readonly IssuerKey[] | undefined> {
    const known = this.#matching(kid);
    if (known.length > 0 || this.#isHanging) return known;
    const isEarly = this.#parts.clock.monotonic() - this.#triedAt < earlyFetchMs;
    if (isEarly && this.#refreshing === undefined) return known;
    if (this.#waiting >= waitingMax) return undefined;
    this.#waiting += 1;
    await this.#refresh();
    this.#waiting -= 1;
    return this.#matching(kid);
  }

  /** Keys with the identifier come first: the verifier tries only a few, and an issuer may have many keys without identifiers. */
  #matching(kid: string | undefined): readonly IssuerKey[] {
    if (kid === undefined) return this.#keys;
    return [kid, undefined].flatMap((one) => this.#keys.filter((key) => key.kid === one));
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const periodMs = isKeyUrl(this.options.keys) ? fetchEveryMs : fileReadEveryMs;
    for (;;) {
      const isTroubled = (this.#trouble.reason ?? this.#withdrawal.reason) !== undefined;
      await pause(this.#parts.clock, isTroubled ? Math.min(periodMs, retryMs) : periodMs, signal);
      if (signal.aborted) return;
      await this.#refresh();
      this.#checkTrust();
    }
  }

  #checkTrust(): void {
    const isTrusted = this.findFault() === undefined;
    if (this.#wasTrusted && !isTrusted) this.#onChanged();
    this.#wasTrusted = isTrusted;
  }

  /** Reads the keys, or waits for a read that hangs, for at most `readMsMax`; concurrent calls share that time. Never rejects. */
  #refresh(): Promise<void> {
    this.#refreshing ??= this.#readInTime().finally(() => void (this.#refreshing = undefined));
    return this.#refreshing;
  }

  /** Stops waiting for a read that hangs, but starts no other: until the read ends, later calls wait for it too, since each read of a disk needs a thread. */
  async #readInTime(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
      this.#isHanging = false;
    });
    const ended = new AbortController();
    const late = pause(this.#parts.clock, readMsMax, ended.signal, this.#stopping.signal);
    await Promise.race([this.#reading, late]);
    ended.abort();
    if (this.#reading === undefined || this.#stopping.signal.aborted) return;
    this.#isHanging = true;
    this.#trouble.failed(new Error(`the read has not ended after ${readMsMax / 1_000} s`));
  }

  async #read(): Promise<void> {
    const { clock, read } = this.#parts;
    this.#triedAt = clock.monotonic();
    const startedAt = this.#triedAt;
    try {
      const text = await read(this.options.keys, this.#stopping.signal);
      if (this.#stopping.signal.aborted) return; // The read may have hung until long after the stop.
      const keys = text === this.#text ? this.#keys : parseIssuerKeys(text);
      this.#confirm(keys, startedAt);
      if (text !== this.#text) this.#take(keys, text);
      this.#readAt = startedAt;
      this.#trouble.done();
      if (this.#keys.length === 0) this.#withdrawal.failed(noneUsable);
      else this.#withdrawal.done();
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#trouble.failed(error);
    }
  }

  /** @throws Error if a set has no usable key, unless an earlier read showed the same, and no read since then showed a usable key. */
  #confirm(keys: readonly IssuerKey[], startedAt: number): void {
    if (keys.length > 0) this.#emptyAt = undefined;
    else this.#emptyAt ??= this.#parts.clock.monotonic();
    if (this.#emptyAt !== undefined && startedAt - this.#emptyAt < confirmedMs) throw new Error(unconfirmed);
  }

  #take(keys: readonly IssuerKey[], text: string): void {
    const former = this.#thumbprints;
    this.#keys = keys;
    this.#text = text;
    this.#thumbprints = new Set(keys.map(({ thumbprint }) => thumbprint));
    if ([...former].some((thumbprint) => !this.#thumbprints.has(thumbprint))) this.#onChanged();
  }
}
