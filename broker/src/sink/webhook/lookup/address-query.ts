import type { Resolver as DnsClient } from "node:dns/promises";
import type { Clock } from "../../../ports/clock.ts";
import { pause } from "../../../lib/pause.ts";

/** Result of a query. `absent`: the name does not exist, or has no address. `failed`: no name server answered, or one answered with a failure. */
export type LookupResult =
  | { readonly kind: "found"; readonly addresses: readonly string[]; readonly ttlMs: number }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly reason: string };

/** Maximum number of addresses to use per name. */
const addressesMax = 16;
/** How long to wait for the second address family after the first answer with addresses (RFC 8305, section 3). */
const secondFamilyMsMax = 50;
/** Codes of name servers for a missing name or address, and of c-ares for an invalid name. */
const absentCodes: ReadonlySet<string> = new Set(["ENOTFOUND", "ENODATA", "EBADNAME"]);

export interface QueryOptions {
  readonly client: Pick<DnsClient, "resolve4" | "resolve6">;
  readonly clock: Pick<Clock, "after">;
  /** Ends the wait for answers; the query then returns what it has. */
  readonly signal: AbortSignal;
}

interface Records {
  readonly addresses: readonly string[];
  readonly ttlMs: number;
}

/** Queries the A and AAAA records of one full name concurrently. IPv4 comes first. Never rejects. */
export async function queryAddresses(name: string, { client, clock, signal }: QueryOptions): Promise<LookupResult> {
  const ended = new AbortController();
  const queries = [client.resolve4(name, { ttl: true }), client.resolve6(name, { ttl: true })].map((query) =>
    query.then(toRecords),
  );
  const found: (Records | undefined)[] = [undefined, undefined];
  const faults: string[] = [];
  const settled = queries.map((query, index) =>
    query.then(
      (records) => void (found[index] = records),
      (error: unknown) => void faults.push(codeOf(error)),
    ),
  );
  const other = Promise.any(queries).then(
    () => pause(clock, secondFamilyMsMax, ended.signal),
    () => undefined,
  );
  await Promise.race([Promise.all(settled), other, untilAborted(signal, ended.signal)]);
  ended.abort();
  return toResult(
    found.filter((records) => records !== undefined),
    faults,
  );
}

function toResult(found: readonly Records[], faults: readonly string[]): LookupResult {
  const addresses = found.flatMap((records) => records.addresses).slice(0, addressesMax);
  if (addresses.length > 0) return { kind: "found", addresses, ttlMs: Math.min(...found.map(({ ttlMs }) => ttlMs)) };
  const failure = faults.find((code) => !absentCodes.has(code));
  if (failure !== undefined) return { kind: "failed", reason: failure };
  return found.length + faults.length < 2 ? { kind: "failed", reason: "ETIMEOUT" } : { kind: "absent" };
}

function toRecords(records: readonly { readonly address: string; readonly ttl: number }[]): Records {
  return {
    addresses: records.map(({ address }) => address),
    ttlMs: Math.min(...records.map(({ ttl }) => ttl * 1000)),
  };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "no code";
}

function untilAborted(signal: AbortSignal, ended: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true, signal: ended }));
}
