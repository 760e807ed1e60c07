import { BoundedMap } from "../../../lib/bounded-map.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { LookupEnd } from "./address-query.ts";

/** Maximum number of cached host names; above it, the cache drops the least recently used one. */
const namesMax = 10_000;
/** Shortest time to cache addresses, whatever their time to live. */
const addressesMsMin = 1000;
/** Longest time to cache addresses, whatever their time to live. */
const addressesMsMax = 60_000;
/** How long to cache a look-up without addresses. */
const absenceMsMax = 5000;
/** Maximum age of stale addresses that are still used while the name servers do not answer (RFC 8767). */
const staleMsMax = 10 * 60_000;

interface Entry {
  readonly end: LookupEnd;
  /** Whether the look-up got no answer; `end` may have earlier addresses all the same. */
  readonly isSilent: boolean;
  readonly goodUntil: number;
  /** The newest addresses, and until when they may replace a missing answer. */
  readonly addresses: readonly string[];
  readonly staleUntil: number;
}

/** Keeps the results of look-ups for a short time. */
export class NameCache {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #entries = new BoundedMap<string, Entry>(namesMax);

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** The cached result, while it is valid. */
  find(name: string): LookupEnd | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined || this.#clock.monotonic() >= entry.goodUntil) return undefined;
    this.#entries.set(name, entry); // Now the most recently used.
    return entry.end;
  }

  /** Whether the last look-up of the name got no answer, even if the cache returns earlier addresses. */
  wasSilent(name: string): boolean {
    return this.#entries.get(name)?.isSilent === true;
  }

  /** Caches a result and returns it. Without an answer from the name servers, caches and returns earlier addresses instead, unless they are too old. */
  note(name: string, end: LookupEnd): LookupEnd {
    const now = this.#clock.monotonic();
    const earlier = this.#entries.get(name);
    this.#entries.set(name, toEntry(end, { now, earlier }));
    return this.find(name) ?? end;
  }
}

function toEntry(end: LookupEnd, { now, earlier }: { now: number; earlier: Entry | undefined }): Entry {
  if (end.kind === "found") {
    const livesMs = Math.min(Math.max(end.ttlMs, addressesMsMin), addressesMsMax);
    const { addresses } = end;
    return { end, isSilent: false, goodUntil: now + livesMs, addresses, staleUntil: now + staleMsMax };
  }
  const isSilent = end.kind === "silent";
  const goodUntil = now + absenceMsMax;
  if (!isSilent || earlier === undefined || now >= earlier.staleUntil) {
    return { end, isSilent, goodUntil, addresses: [], staleUntil: now };
  }
  const { addresses, staleUntil } = earlier;
  return { end: { kind: "found", addresses, ttlMs: 0 }, isSilent, goodUntil, addresses, staleUntil };
}
