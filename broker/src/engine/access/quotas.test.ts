import { beforeEach, describe, expect, it } from "vitest";
import type { BrokerError } from "@stele/wire";
import { VirtualClock } from "../../ports/testing/virtual-clock.ts";
import type { PublishCall } from "../broker.ts";
import type { Known, Owner } from "./caller.ts";
import { Quotas } from "./quotas.ts";
import { RuleSet } from "./rule-set.ts";

const rules = new RuleSet([]);
const known = (name: string, tenant?: string): Known => {
  const id = (tenant === undefined ? name : `${tenant}/${name}`) as Owner;
  return { kind: "known", id, tenant, rules, expiresAt: undefined, keyId: undefined };
};
const callOf = (bytes: number): PublishCall => {
  return { topic: "a", groupId: undefined, content: Buffer.alloc(bytes), extensions: [] };
};

let clock: VirtualClock;
let quotas: Quotas;
beforeEach(() => {
  clock = new VirtualClock();
  quotas = new Quotas(
    {
      tenants: { acme: { publishesPerSecond: 50, connections: 2 }, "*": { publishesPerSecond: 1_000 }, free: {} },
      principals: { "acme/small": { bytesPerSecond: 100 }, "*": { connections: 3 } },
    },
    clock,
  );
});

/** The refusal of publishes; undefined if they are allowed. */
function publish(principal: Known, ...bytes: readonly number[]): BrokerError | undefined {
  try {
    quotas.countPublishes({ principal }, bytes.map(callOf));
    return undefined;
  } catch (error) {
    return error as BrokerError;
  }
}

describe("publishes", () => {
  it("of 100 connections of a tenant stay within its quota, and do not slow another tenant", async () => {
    const noisy = Array.from({ length: 100 }, (_, index) => known(`client-${index % 7}`, "acme"));
    const quiet = known("client", "globex");
    const counts = { noisy: 0, quiet: 0 };
    for (let step = 0; step < 400; step += 1) {
      for (const principal of noisy) if (publish(principal, 1) === undefined) counts.noisy += 1;
      if (publish(quiet, 1) === undefined) counts.quiet += 1;
      await clock.advance(10);
    }
    expect(counts.quiet).toBe(400);
    expect(counts.noisy).toBeGreaterThanOrEqual(4 * 50);
    expect(counts.noisy).toBeLessThanOrEqual(5 * 50);
  });

  it("are allowed again exactly after the time that the refusal names", async () => {
    const principal = known("shop", "acme");
    expect(publish(principal, ...Array.from({ length: 75 }, () => 0))).toBeUndefined();
    const refusal = publish(principal, 0);
    expect(refusal).toMatchObject({ code: 200_301, retry: true, retryAfterMs: 501 });
    expect(refusal?.message).toContain('tenant "acme" may publish 50 events a second; try again in 501 ms');
    await clock.advance(500);
    expect(publish(principal, 0)).toMatchObject({ retryAfterMs: 1 });
    await clock.advance(1);
    expect(publish(principal, 0)).toBeUndefined();
  });

  it("may have more bytes than a second allows, but the next ones then wait longer", async () => {
    const principal = known("small", "acme");
    expect(publish(principal, 1_000)).toBeUndefined();
    expect(publish(principal, 0)?.message).toContain('principal "acme/small" may publish 100 bytes a second');
    await clock.advance(9_001);
    expect(publish(principal, 0)).toBeUndefined();
    const extensions = [["svc-a", "x".repeat(300)]] as const;
    quotas.countPublishes({ principal }, [{ ...callOf(0), extensions }]);
    expect(publish(principal, 0)).toMatchObject({ code: 200_301 });
  });

  it("count the bytes of their extensions, not the characters", () => {
    const principal = known("small", "acme");
    quotas.countPublishes({ principal }, [{ ...callOf(0), extensions: [["svc-a", "€".repeat(40)]] }]);
    expect(publish(principal, 0)).toMatchObject({ code: 200_301 });
  });

  it("that the principal's quota refuses do not count towards the tenant's quota", async () => {
    publish(known("small", "acme"), 10_000);
    for (let index = 0; index < 100; index += 1) publish(known("small", "acme"), 1);
    for (let index = 0; index < 49; index += 1) expect(publish(known("shop", "acme"), 1)).toBeUndefined();
    expect(publish(known("shop", "acme"), 1)).toMatchObject({ code: 200_301 });
  });

  it("of tenants and principals without a quota are not limited", () => {
    for (const tenant of ["free", undefined]) {
      for (let index = 0; index < 5_000; index += 1) expect(publish(known("shop", tenant), 9)).toBeUndefined();
    }
  });

  it("of a tenant named constructor have the quota of all other tenants", () => {
    expect(publish(known("shop", "constructor"), ...Array.from({ length: 1_000 }, () => 1))).toBeUndefined();
    expect(publish(known("shop", "constructor"), 1)).toMatchObject({ code: 200_301 });
  });

  it("of a principal stay counted while thousands of other principals publish", () => {
    expect(publish(known("small", "acme"), 10_000)).toBeUndefined();
    for (let index = 0; index < 5_000; index += 1) publish(known(`p${index}`), 1);
    expect(publish(known("small", "acme"), 1)).toMatchObject({ code: 200_301 });
  });
});

const connect = (principal: Known, ended: AbortController, session?: string): void =>
  void quotas.countConnection({ principal, signal: ended.signal }, session);

describe("connections", () => {
  it("count until they end, for all principals of a tenant together", () => {
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
    connect(known("a", "acme"), first);
    connect(known("b", "acme"), second);
    connect(known("b", "acme"), second); // a second count of the same connection
    const more = (): void => connect(known("c", "acme"), third);
    expect(more).toThrow(/tenant "acme" may have 2 connections; try again when one has ended/);
    first.abort();
    expect(more).not.toThrow();
    expect(() => connect(known("d", "acme"), new AbortController())).toThrow(/2 connections/);
  });

  it("are counted down once if they end and their call fails too", () => {
    for (let index = 0; index < 3; index += 1) {
      const ended = new AbortController();
      const uncount = quotas.countConnection({ principal: known("a", "acme"), signal: ended.signal });
      ended.abort();
      uncount();
    }
    for (let index = 0; index < 2; index += 1) connect(known("a", "acme"), new AbortController());
    expect(() => connect(known("a", "acme"), new AbortController())).toThrow(/2 connections/);
  });

  it("are admitted at the limit if they take over a session, but not as its third connection before the first has ended", () => {
    const [former, other, next] = [new AbortController(), new AbortController(), new AbortController()];
    connect(known("a", "acme"), former, "device 1");
    connect(known("a", "acme"), other, "device 2");
    connect(known("a", "acme"), next, "device 1");
    const more = (session: string) => () => connect(known("a", "acme"), new AbortController(), session);
    for (const session of ["device 1", "device 3"]) expect(more(session)).toThrow(/may have [23] connections/);
    former.abort();
    expect(more("device 3")).toThrow(/may have [23] connections/);
    next.abort();
    expect(more("device 1")).not.toThrow();
    expect(more("device 3")).toThrow(/may have [23] connections/);
  });

  it("count from the first one on, even if its account is the thousandth", () => {
    for (let index = 0; index < 999; index += 1) publish(known(`p${index}`), 1);
    for (let index = 0; index < 3; index += 1) connect(known("shop", "globex"), new AbortController());
    const refusal = /principal "globex\/shop" may have 3 connections/;
    expect(() => connect(known("shop", "globex"), new AbortController())).toThrow(refusal);
  });

  it("that were refused or have ended do not count", () => {
    const open = Array.from({ length: 3 }, () => new AbortController());
    for (const ended of open) connect(known("shop"), ended);
    for (let index = 0; index < 9; index += 1) {
      expect(() => connect(known("shop"), new AbortController())).toThrow(/principal "shop" may have 3 connections/);
    }
    open[0]?.abort();
    const late = new AbortController();
    late.abort();
    connect(known("shop"), late);
    expect(() => connect(known("shop"), new AbortController())).not.toThrow();
  });
});

it("callbacks that wait for their principal stay within the tenant's quota, even if thousands of others publish meanwhile", async () => {
  const table = { tenants: { acme: { callbacksPerSecond: 1 } }, principals: { "*": { callbacksPerSecond: 0.01 } } };
  quotas = new Quotas(table, clock);
  const { signal } = new AbortController();
  let passed = 0;
  const call = (owner: string): void =>
    void (quotas.callbackTurn(owner, signal)?.then(() => (passed += 1)) ?? (passed += 1));
  for (const owner of ["acme/a", "acme/b", "acme/a", "acme/b"]) call(owner);
  await clock.advance(50_000);
  expect(passed).toBe(2);
  for (let index = 0; index < 5_000; index += 1) publish(known(`p${index}`), 1);
  await clock.advance(48_000);
  for (const owner of ["acme/c", "acme/d", "acme/e"]) call(owner); // uses up the tenant's quota of the next second
  await clock.advance(10);
  expect(passed).toBe(4);
  await clock.advance(995);
  expect(passed).toBe(5); // two more wait for the tenant's next second
});

it("storedQuotas returns the quotas of the principal and of its tenant", () => {
  const table = {
    tenants: { acme: { sessions: 2 }, "*": { subscriptions: 9 } },
    principals: { "acme/shop": { sessions: 1, subscriptions: 3 } },
  };
  const quotas = new Quotas(table, new VirtualClock());
  const things = ["sessions", "subscriptions"] as const;
  expect(quotas.storedQuotas("acme/shop", things)).toEqual([
    { of: "principal", name: "acme/shop", what: "sessions", max: 1 },
    { of: "principal", name: "acme/shop", what: "subscriptions", max: 3 },
    { of: "tenant", name: "acme", what: "sessions", max: 2 },
  ]);
  expect(quotas.storedQuotas("globex/x", things)).toEqual([
    { of: "tenant", name: "globex", what: "subscriptions", max: 9 },
  ]);
  expect(quotas.storedQuotas("anonymous", things)).toEqual([]);
});
