import { BrokerError, quote } from "@stele/wire";
import { everyOther, type Quota, type QuotaTable } from "../../domain/quota.ts";
import { RateMeter } from "../../lib/rate-meter.ts";
import type { Clock } from "../../ports/clock.ts";
import type { PublishCall } from "../broker.ts";
import type { Caller, Principal } from "./caller.ts";

/** Accounts that are kept before those are looked for that use nothing. */
const accountsSweptMin = 1_000;

interface Account {
  /** As a refusal calls it. */
  readonly name: string;
  readonly quota: Quota;
  readonly publishes: RateMeter | undefined;
  readonly bytes: RateMeter | undefined;
  connections: number;
}

/** What tenants and principals use of this node, each call counted for its principal and for its tenant. */
export class Quotas {
  readonly #table: QuotaTable;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #accounts = new Map<string, Account>();
  readonly #connected = new WeakSet<AbortSignal>();
  #sweepAt = accountsSweptMin;

  constructor(table: QuotaTable, clock: Pick<Clock, "monotonic">) {
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

  /** Counts a connection until it has ended; one that is counted already is not again. @throws BrokerError 200301. */
  countConnection({ principal, signal }: Pick<Caller, "principal" | "signal">): void {
    if (signal.aborted || this.#connected.has(signal)) return;
    const accounts = this.#accountsOf(principal);
    for (const account of accounts) checkConnections(account);
    if (accounts.length === 0) return;
    this.#connected.add(signal);
    for (const account of accounts) account.connections += 1;
    signal.addEventListener("abort", () => {
      for (const account of accounts) account.connections -= 1;
    });
  }

  #accountsOf(principal: Principal): readonly Account[] {
    if (principal.kind !== "known") return [];
    const { id, tenant } = principal;
    const own = this.#account("principal", id);
    const shared = tenant === undefined ? undefined : this.#account("tenant", tenant);
    return [own, shared].filter((account) => account !== undefined);
  }

  /** Undefined for whom nothing is bounded. */
  #account(kind: "principal" | "tenant", id: string): Account | undefined {
    const quotas = this.#table[`${kind}s`];
    const quota = Object.hasOwn(quotas, id) ? quotas[id] : quotas[everyOther];
    if (quota === undefined) return undefined;
    const name = `${kind} ${quote(id)}`;
    const known = this.#accounts.get(name);
    if (known !== undefined) return known;
    if (this.#accounts.size >= this.#sweepAt) this.#sweep();
    const now = this.#clock.monotonic();
    const meter = (perSecond: number | undefined) =>
      perSecond === undefined ? undefined : new RateMeter(perSecond, now);
    const { publishesPerSecond, bytesPerSecond } = quota;
    const account = { name, quota, publishes: meter(publishesPerSecond), bytes: meter(bytesPerSecond), connections: 0 };
    this.#accounts.set(name, account);
    return account;
  }

  /** Forgets accounts that a new one would equal. Principals of tokens are without number. */
  #sweep(): void {
    const now = this.#clock.monotonic();
    for (const [name, { publishes, bytes, connections }] of this.#accounts) {
      const isUnused = publishes?.isFull(now) !== false && bytes?.isFull(now) !== false && connections === 0;
      if (isUnused) this.#accounts.delete(name);
    }
    this.#sweepAt = Math.max(accountsSweptMin, 2 * this.#accounts.size);
  }
}

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
  throw new BrokerError("overQuota", { details });
}

function bytesOf({ content, extensions }: PublishCall): number {
  return extensions.reduce((sum, [key, value]) => sum + key.length + value.length, content.byteLength);
}
