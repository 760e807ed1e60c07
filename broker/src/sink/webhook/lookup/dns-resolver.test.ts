import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createSystemClock } from "../../../lib/system/clock.ts";
import { noMetrics } from "../../../ports/metrics.ts";
import { startDnsServer } from "../testing/dns-server.ts";
import { DnsResolver } from "./dns-resolver.ts";

interface Machine {
  readonly zone?: Readonly<Record<string, string>>;
  readonly hosts?: string;
  readonly resolvConf?: string;
}

/** A resolver of a machine with these files, whose name server knows this zone. */
async function startResolver({ zone = {}, hosts = "", resolvConf = "" }: Machine = {}) {
  const records = new Map(Object.entries(zone));
  const server = await startDnsServer(records);
  const folder = mkdtempSync(join(tmpdir(), "stele-lookup-"));
  const files = { hostsFile: join(folder, "hosts"), resolvConfFile: join(folder, "resolv.conf") };
  writeFileSync(files.hostsFile, hosts);
  writeFileSync(files.resolvConfFile, resolvConf);
  const outcomes: string[] = [];
  const time = { aheadMs: 0 };
  const clock = createSystemClock();
  const resolver = new DnsResolver({
    ...files,
    clock: { ...clock, monotonic: () => clock.monotonic() + time.aheadMs },
    metrics: { ...noMetrics, lookupEnded: (outcome) => void outcomes.push(outcome) },
    servers: [server.address],
  });
  onTestFinished(async () => {
    resolver.close();
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });
  return { resolver, server, records, files, outcomes, time };
}

describe("a host name", () => {
  test("is resolved by the name server, to an IPv4 or an IPv6 address", async () => {
    const { resolver, outcomes } = await startResolver({
      zone: { "four.example": "10.0.0.1", "six.example": "fd00::1" },
    });
    expect(await resolver.resolve("four.example")).toEqual(["10.0.0.1"]);
    expect(await resolver.resolve("SIX.example")).toEqual(["fd00::1"]);
    expect(outcomes).toEqual(["found", "found"]);
  });

  test("is resolved by the hosts file first, which is read again after a change", async () => {
    const { resolver, server, files, time } = await startResolver({ zone: { a: "10.0.0.1" }, hosts: "10.0.0.2 a" });
    expect(await resolver.resolve("a")).toEqual(["10.0.0.2"]);
    expect(server.questions).toEqual([]);
    writeFileSync(files.hostsFile, "10.0.0.33 a");
    time.aheadMs = 1000;
    expect(await resolver.resolve("a")).toEqual(["10.0.0.33"]);
    rmSync(files.hostsFile);
    time.aheadMs = 2000;
    expect(await resolver.resolve("a")).toEqual(["10.0.0.1"]);
  });

  test.each(["localhost", "LocalHost.", "a.localhost"])(
    "%s is loopback, whatever the name server and the hosts file say",
    async (name) => {
      const { resolver } = await startResolver({ zone: { localhost: "10.0.0.1" }, hosts: "10.0.0.2 localhost" });
      expect(await resolver.resolve(name)).toEqual(["127.0.0.1", "::1"]);
    },
  );

  test("is completed by the search list, which is read again after a change", async () => {
    const zone = { "receiver.ns.svc.cluster.local": "10.0.0.1", "receiver.ns.lan": "10.0.0.2" };
    const resolvConf = "search app.svc.cluster.local svc.cluster.local\noptions ndots:5";
    const { resolver, server, files, time } = await startResolver({ zone, resolvConf });
    expect(await resolver.resolve("receiver.ns")).toEqual(["10.0.0.1"]);
    expect(new Set(server.questions)).toEqual(
      new Set(["receiver.ns.app.svc.cluster.local", "receiver.ns.svc.cluster.local"]),
    );
    writeFileSync(files.resolvConfFile, "search lan");
    time.aheadMs = 60_000;
    expect(await resolver.resolve("receiver.ns")).toEqual(["10.0.0.2"]);
  });

  test("that does not exist fails with 'not found', and is not queried again for a while", async () => {
    const { resolver, server, outcomes } = await startResolver();
    const faults = await Promise.allSettled([resolver.resolve("a"), resolver.resolve("a"), resolver.resolve("a..b")]);
    expect(faults.map((fault) => fault.status === "rejected" && String(fault.reason))).toEqual(
      faults.map(() => "AttemptError: the host name was not found"),
    );
    await expect(resolver.resolve("a")).rejects.toThrow("not found");
    expect(server.questions).toEqual(["a", "a"]); // One per family.
    expect(outcomes).toEqual(["absent", "absent"]);
  });

  test("fails with the code of the name server if the name server fails", async () => {
    const { resolver, outcomes } = await startResolver({ zone: { a: "fails" } });
    await expect(resolver.resolve("a")).rejects.toThrow("the host name could not be looked up (ESERVFAIL)");
    expect(outcomes).toEqual(["failed"]);
  });

  test("without an answer fails after 3 s, search list included, and does not delay other names", async () => {
    const zone = { slow: "silent", "slow.lan": "silent", fast: "10.0.0.1" };
    const { resolver, outcomes } = await startResolver({ zone, resolvConf: "search lan" });
    const startedAt = performance.now();
    const slow = expect(resolver.resolve("slow")).rejects.toThrow("the host name was not looked up within 3000 ms");
    expect(await resolver.resolve("fast.")).toEqual(["10.0.0.1"]);
    expect(performance.now() - startedAt).toBeLessThan(1000);
    await slow;
    expect(performance.now() - startedAt).toBeLessThan(4000);
    expect(outcomes).toEqual(["found", "timed-out"]);
  });

  test("is not delayed by hundreds of names that have cached addresses, but whose name servers stopped answering", async () => {
    const names = Array.from({ length: 300 }, (_, index) => `stale${index}.lan`);
    const zone = Object.fromEntries(names.map((name) => [name, "10.0.0.1"]));
    const { resolver, records, time } = await startResolver({ zone: { ...zone, "fast.lan": "10.0.0.2" } });
    for (const name of names) await resolver.resolve(name);
    const answerAll = (answer: "fails" | "silent", aheadMs: number): void => {
      for (const name of names) records.set(name, answer);
      time.aheadMs = aheadMs;
    };
    answerAll("fails", 60_000);
    for (const name of names) await resolver.resolve(name); // Now the resolver knows that they get no answer.
    answerAll("silent", 120_000);
    const ended: string[] = [];
    for (const name of names) void resolver.resolve(name).then(() => ended.push(name));
    expect(await resolver.resolve("fast.lan")).toEqual(["10.0.0.2"]);
    expect(ended).toEqual([]);
  });

  test("fails at once if the resolver closes during its look-up", async () => {
    const { resolver, server } = await startResolver({ zone: { a: "silent" } });
    const lookup = expect(resolver.resolve("a")).rejects.toThrow("looked up");
    await expect.poll(() => server.questions.length).toBeGreaterThan(0);
    resolver.close();
    await lookup;
  });
});
