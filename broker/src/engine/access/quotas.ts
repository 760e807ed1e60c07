import { BrokerError, quote } from "@stele/wire";
import { extensionsBytes } from "../../domain/event-rules.ts";
import {
  everyOther,
  type Quota,
  type QuotaTable,
  type StoredQuota,
  type CountedRows,
  type TenantQuota,
  tenantOf,
} from "../../domain/quota.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import { Pace } from "../../lib/pace.ts";
import { RateMeter } from "../../lib/rate-meter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { PublishCall } from "../broker.ts";
import { HeldRefusals } from "./held-refusals.ts";
import { type Caller, nobody, type Principal } from "./caller.ts";

/** Number of accounts at which the sweep removes unused ones. */
const accountsSweptMin = 1_000;
/** Retry time, in milliseconds, of a refusal that lasts until a connection ends or a stored thing is removed. */
const storedRetryAfterMs = 10_000;

interface Account {
  /** The name in refusals: `principal "x"` or `tenant "x"`. */
  readonly name: string;
  readonly quota: Quota;
  readonly publishes: RateMeter | undefined;
  readonly bytes: RateMeter | undefined;
  readonly callbacks: Pace | undefined;
  connections: number;
}

/** Counts the use of this node by tenants and principals. Each call counts for its principal and for its tenant. */
export class Quotas {
  /** Delayed refusals of publishes. */
  readonly refusals: HeldRefusals;
  readonly #table: QuotaTable;
  readonly #clock: Pick<Clock, "monotonic" | "after">;
  readonly #accounts = new Map<string, Account>();
  readonly #connected = new WeakSet<AbortSignal>();
  /** The number of counted connections by session: two during a take-over. */
  readonly #bySession = new Map<string, number>();
  #sweepAt = accountsSweptMin;

  constructor(table: QuotaTable, clock: Pick<Clock, "monotonic" | "after">) {
    this.refusals = new HeldRefusals(clock);
    this.#table = table;
    this.#clock = clock;
  }

  /** Counts publishes, all or none of them. @throws BrokerError 200301 with the time to wait. */
  countPublishes({ principal }: Pick<Caller, "principal">, calls: readonly PublishCall[]): void {
    const accounts = this.#accountsOf(principal);
    if (accounts.length === 0) return;
    const now = this.#clock.monotonic();
    for (const account of accounts) checkRates(account, now);
    const bytes = calls.reduce((sum, call) => sum + bytesOf(call), 0);
    for (const account of accounts) {
      account.publishes?.take(calls.length);
      account.bytes?.take(bytes);
    }
  }

  /**
   * Counts a connection until it ends; a second call for the same connection counts nothing. A connection that takes over its `session` is admitted at the
   * limit, since it ends the former connection; a third connection of that session at the same time is not. Call the returned function to stop
   * counting earlier; after that or the end of the connection it does nothing. @throws BrokerError 200301.
   */
  countConnection({ principal, signal }: Pick<Caller, "principal" | "signal">, session?: string): () => void {
    if (signal.aborted || this.#connected.has(signal)) return nothing;
    const accounts = this.#accountsOf(principal);
    if (accounts.length === 0) return nothing;
    if (this.#ofSession(session) !== 1) for (const account of accounts) checkConnections(account);
    this.#connected.add(signal);
    for (const account of accounts) account.connections += 1;
    this.#addOfSession(session, 1);
    let isCounted = true;
    const end = (): void => {
      if (!isCounted) return; // A call that fails because its connection ended calls this a second time.
      isCounted = false;
      signal.removeEventListener("abort", end);
      this.#connected.delete(signal);
      this.#addOfSession(session, -1);
      for (const account of accounts) account.connections -= 1;
    };
    signal.addEventListener("abort", end);
    return end;
  }

  #ofSession(session: string | undefined): number {
    return session === undefined ? 0 : (this.#bySession.get(session) ?? 0);
  }

  #addOfSession(session: string | undefined, change: number): void {
    if (session === undefined) return;
    const count = this.#ofSession(session) + change;
    if (count === 0) this.#bySession.delete(session);
    else this.#bySession.set(session, count);
  }

  /**
   * Waits until an owner's quotas allow a callback; returns undefined if they allow it at once. Finds the account of the tenant after the wait for the
   * principal: a sweep during that wait may replace it.
   */
  callbackTurn(owner: string, signal: CancelSignal): Promise<void> | undefined {
    this.#sweepIfMany();
    const tenant = tenantOf(owner);
    const passTenant = (): Promise<void> | undefined =>
      tenant === undefined ? undefined : this.#account("tenant", tenant)?.callbacks?.pass(signal);
    const passed = this.#account("principal", owner)?.callbacks?.pass(signal);
    return passed === undefined ? passTenant() : passed.then(passTenant);
  }

  /** The quotas on the rows of these kinds that an owner may store. */
  storedQuotas(owner: string, kinds: readonly CountedRows[]): readonly StoredQuota[] {
    const of = (kind: "principal" | "tenant", name: string | undefined): readonly StoredQuota[] => {
      const quota = name === undefined ? undefined : this.#quotaOf(kind, name);
      return kinds.flatMap((what) => {
        const max = quota?.[what];
        return name === undefined || max === undefined ? [] : [{ of: kind, name, what, max }];
      });
    };
    return owner === nobody ? [] : [...of("principal", owner), ...of("tenant", tenantOf(owner))];
  }

  /** Maximum number of topics of a tenant; undefined if it is not limited. */
  topicsMax(tenant: string): number | undefined {
    return this.#tenantQuotaOf(tenant)?.topics;
  }

  #accountsOf(principal: Principal): readonly Account[] {
    return principal.kind === "known" ? this.#accountsOfOwner(principal.id) : [];
  }

  #accountsOfOwner(owner: string): readonly Account[] {
    this.#sweepIfMany(); // Not between the two look-ups: the sweep might remove the principal's account, which is still unused.
    const tenant = tenantOf(owner);
    const own = this.#account("principal", owner);
    const shared = tenant === undefined ? undefined : this.#account("tenant", tenant);
    return [own, shared].filter((account) => account !== undefined);
  }

  #tenantQuotaOf(tenant: string): TenantQuota | undefined {
    const { tenants } = this.#table;
    return Object.hasOwn(tenants, tenant) ? tenants[tenant] : tenants[everyOther];
  }

  #quotaOf(kind: "principal" | "tenant", name: string): Quota | undefined {
    if (kind === "tenant") return this.#tenantQuotaOf(name);
    const { principals } = this.#table;
    return Object.hasOwn(principals, name) ? principals[name] : principals[everyOther];
  }

  /** The account of a tenant or principal; undefined if it has no quota. */
  #account(kind: "principal" | "tenant", id: string): Account | undefined {
    const quota = this.#quotaOf(kind, id);
    if (quota === undefined) return undefined;
    const name = `${kind} ${quote(id)}`;
    const known = this.#accounts.get(name);
    if (known !== undefined) return known;
    const now = this.#clock.monotonic();
    const meter = (perSecond: number | undefined) =>
      perSecond === undefined ? undefined : new RateMeter(perSecond, now);
    const { publishesPerSecond, bytesPerSecond, callbacksPerSecond } = quota;
    const callbacks = callbacksPerSecond === undefined ? undefined : new Pace(callbacksPerSecond, this.#clock);
    const [publishes, bytes] = [meter(publishesPerSecond), meter(bytesPerSecond)];
    const account = { name, quota, publishes, bytes, callbacks, connections: 0 };
    this.#accounts.set(name, account);
    return account;
  }

  /** Removes accounts whose state equals that of a new one: tokens can bring any number of principals. */
  #sweepIfMany(): void {
    if (this.#accounts.size < this.#sweepAt) return;
    const now = this.#clock.monotonic();
    for (const [name, { publishes, bytes, callbacks, connections }] of this.#accounts) {
      const isUnused = publishes?.isFull(now) !== false && bytes?.isFull(now) !== false && connections === 0;
      if (isUnused && callbacks?.isIdle !== false) this.#accounts.delete(name);
    }
    this.#sweepAt = Math.max(accountsSweptMin, 2 * this.#accounts.size);
  }
}

const nothing = (): void => {};

function checkRates({ name, quota, publishes, bytes }: Account, now: number): void {
  const [forEvents, forBytes] = [publishes?.waitMs(now) ?? 0, bytes?.waitMs(now) ?? 0];
  const retryAfterMs = Math.max(forEvents, forBytes);
  if (retryAfterMs === 0) return;
  const { publishesPerSecond, bytesPerSecond } = quota;
  const bound = forEvents >= forBytes ? `${publishesPerSecond} events` : `${bytesPerSecond} bytes`;
  const details = `${name} may publish ${bound} a second; try again in ${retryAfterMs} ms`;
  throw new BrokerError("overQuota", { details, retryAfterMs });
}

function checkConnections({ name, quota, connections }: Account): void {
  if (quota.connections === undefined || connections < quota.connections) return;
  const details = `${name} may have ${quota.connections} connections; try again when one has ended`;
  throw new BrokerError("overQuota", { details, retryAfterMs: storedRetryAfterMs });
}

/** The names of stored things in refusals. */
const wordsOf = { subscriptions: "subscriptions", callbackHosts: "hosts of callbacks", sessions: "sessions" } as const;

/** The refusal of a call that would exceed a quota of stored things. */
export function overStoredQuota({ of, name, what, max }: StoredQuota): BrokerError {
  return tooMany(`${of} ${quote(name)} may have ${max} ${wordsOf[what]}`);
}

export function overTopicQuota(tenant: string, max: number): BrokerError {
  return tooMany(`tenant ${quote(tenant)} may have ${max} topics`);
}

function tooMany(rule: string): BrokerError {
  const details = `${rule}; try again when one was removed, or ask the operator for more`;
  return new BrokerError("overQuota", { details, retryAfterMs: storedRetryAfterMs });
}

function bytesOf({ content, extensions }: PublishCall): number {
  return content.byteLength + extensionsBytes(extensions);
}
