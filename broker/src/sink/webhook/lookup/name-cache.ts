import { BoundedMap } from "../../../lib/bounded-map.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { LookupResult } from "./address-query.ts";

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
  readonly result: LookupResult;
  /** Whether the look-up failed. `result` may still have the addresses of an earlier one. */
  readonly isFailed: boolean;
  readonly validUntil: number;
  /** The newest addresses. Until `staleUntil`, they may replace the result of a failed look-up. */
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
  find(name: string): LookupResult | undefined {
    const entry = this.#entries.get(name);
    if (entry === undefined || this.#clock.monotonic() >= entry.validUntil) return undefined;
    this.#entries.set(name, entry); // Now the most recently used.
    return entry.result;
  }

  /** Whether the last look-up of the name failed, even if the cache returns earlier addresses. */
  hasFailed(name: string): boolean {
    return this.#entries.get(name)?.isFailed === true;
  }

  /** Caches a result and returns it. If the look-up failed, caches and returns earlier addresses instead, unless they are too old. */
  record(name: string, result: LookupResult): LookupResult {
    const now = this.#clock.monotonic();
    const earlier = this.#entries.get(name);
    this.#entries.set(name, toEntry(result, { now, earlier }));
    return this.find(name) ?? result;
  }
}

function toEntry(result: LookupResult, { now, earlier }: { now: number; earlier: Entry | undefined }): Entry {
  if (result.kind === "found") {
    const livesMs = Math.min(Math.max(result.ttlMs, addressesMsMin), addressesMsMax);
    const { addresses } = result;
    return { result, isFailed: false, validUntil: now + livesMs, addresses, staleUntil: now + staleMsMax };
  }
  const isFailed = result.kind === "failed";
  const validUntil = now + absenceMsMax;
  if (!isFailed || earlier === undefined || now >= earlier.staleUntil) {
    return { result, isFailed, validUntil, addresses: [], staleUntil: now };
  }
  const { addresses, staleUntil } = earlier;
  return { result: { kind: "found", addresses, ttlMs: 0 }, isFailed, validUntil, addresses, staleUntil };
}
