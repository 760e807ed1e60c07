import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type EndedRun, type Exit, runBroker, startAndSignal, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { type Behaviour, startReceiver } from "../harness/receiver.ts";
import { slow } from "../harness/behaviours.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { startLocalBroker } from "./support/local-broker.ts";
import { canMount, mountSmallDisk } from "./support/small-disk.ts";
import { PublishLoad } from "./support/publish-load.ts";
import { expectFound, expectGaplessSequences, expectMatchesLoad, replayAll } from "./support/replay.ts";

const topics = ["l/a", "l/b"];

/** A broker whose receiver has got the first attempt of an event. */
async function startDelivering(behaviour: Behaviour, env: Readonly<Record<string, string>> = {}) {
  const folder = createTempFolder();
  const receiver = await startReceiver({ behaviour });
  const broker = await startBroker({ dataDir: folder.path, env });
  await using client = new Client(broker.url);
  await client.open("l/one");
  await client.subscribe({ topic: "l/one", url: receiver.url });
  await client.publish("l/one", "1");
  await receiver.waitFor("the first attempt", () => receiver.attempts.length === 1);
  const dispose = async (): Promise<void> => {
    await broker[Symbol.asyncDispose]();
    await receiver[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  };
  return { broker, [Symbol.asyncDispose]: dispose };
}

describe("a graceful stop", () => {
  it.each(["SIGTERM", "SIGINT"] as const)(
    "%s under load finishes requests in progress and exits with 0; the next start has every event and repeats none",
    async (signal) => {
      using folder = createTempFolder();
      await using receiver = await startReceiver();
      const load = new PublishLoad(topics, { publishersPerTopic: 4 });
      await using broker = await startBroker({ dataDir: folder.path });
      await using client = new Client(broker.url);
      for (const topic of topics) await client.open(topic);
      await client.subscribe({ topic: "l/+", url: receiver.url });
      load.start(broker.url);
      await until("100 events are acknowledged", () => load.acknowledged.size >= 100);
      broker.signal(signal);
      const exit = await broker.exited;
      await load.stop();
      expect(exit).toMatchObject({ code: 0, signal: null });
      expect(load.refusals).toEqual([]);

      await using second = await startBroker({ dataDir: folder.path });
      await using client2 = new Client(second.url);
      const events = await replayAll(client2);
      expectMatchesLoad(events, load);
      // Every committed event was acknowledged.
      expect(events).toHaveLength(load.acknowledged.size);
      await expectGaplessSequences(client2, events);
      await expectFound(client2, load.acknowledged.values());
      const more = await client2.publish("l/a", "after the restart");
      const accepted = await receiver.waitForCount(events.length + 1);
      const expected = [...events.map(({ eventId }) => eventId), more.eventId];
      expect(accepted.map(({ eventId }) => eventId)).toEqual(expected);
    },
  );

  it("a stop waits for a callback in progress, and the next start does not repeat its event", async () => {
    using folder = createTempFolder();
    await using receiver = await startReceiver({ behaviour: slow(500) });
    await using broker = await startBroker({ dataDir: folder.path });
    await using client = new Client(broker.url);
    await client.open("l/slow");
    await client.subscribe({ topic: "l/slow", url: receiver.url });
    const sent = [await client.publish("l/slow", "1"), await client.publish("l/slow", "2")];
    await receiver.waitFor("the first attempt", () => receiver.attempts.length === 1);
    expect((await broker.stop()).code).toBe(0);
    await using second = await startBroker({ dataDir: folder.path });
    await receiver.waitForCount(2);
    expect(receiver.attempts.map(({ event }) => event.eventId)).toEqual(sent.map(({ eventId }) => eventId));
    expect((await second.stop()).code).toBe(0);
  });

  it("SIGTERM, SIGINT and SIGHUP stop a broker cleanly while it waits for a chain, and the next start finds its data folder as usual", async () => {
    using folder = createTempFolder();
    const groups = [
      { id: "1", endpoints: "embedded" },
      { id: "2", endpoints: ["http://127.0.0.1:1"] },
    ];
    const env = { STELE_GROUPS: JSON.stringify(groups) };
    for (const [name, exit] of [
      ["SIGTERM", { code: 0, signal: null }],
      ["SIGINT", { code: 0, signal: null }],
      ["SIGHUP", { code: null, signal: "SIGHUP" }],
    ] as const) {
      const when = /group not started, trying again/;
      const run = await startAndSignal({ dataDir: folder.path, env }, { name, when });
      expect(run, name).toMatchObject(exit);
      expect(run.stderr).not.toMatch(/is ready|has started/);
      expect(run.stdout).toContain("broker stopped");
    }
    await using again = await startBroker({ dataDir: folder.path });
    expect((await again.stop()).code).toBe(0);
  });

  it("a stop waits for a callback in progress if the signal comes twice, as it does when npm passes on Ctrl-C", async () => {
    await using delivering = await startDelivering(slow(500));
    const { broker } = delivering;
    broker.signal("SIGINT");
    expect(await broker.stop()).toMatchObject({ code: 0, signal: null });
    expect(broker.stdout()).toContain("broker stopped");
  });

  it("while a stopping broker waits for a callback, another SIGINT ends the process at once if it comes over 1 s after the first", async () => {
    const env = { STELE_SHUTDOWN_DEADLINE_MS: "300000", STELE_CALLBACK_TIMEOUT_MS: "300000" };
    await using delivering = await startDelivering(() => {}, env);
    const { broker } = delivering;
    let exit: Exit | undefined;
    void broker.exited.then((ended) => (exit = ended));
    await until("the broker has ended", () => {
      broker.signal("SIGINT");
      return exit !== undefined;
    });
    expect(exit).toMatchObject({ code: 1, signal: null });
    expect(broker.stdout()).not.toContain("broker stopped");
  });

  it("a stop ends within its deadline when a callback hangs", async () => {
    // Without the deadline, the stop would wait for the attempt longer than this test's timeout.
    const env = { STELE_SHUTDOWN_DEADLINE_MS: "300", STELE_CALLBACK_TIMEOUT_MS: "300000" };
    await using delivering = await startDelivering(() => {}, env);
    const { broker } = delivering;
    expect((await broker.stop()).code).toBe(0);
  });
});

describe("a start that fails", () => {
  it("a start on a data folder in use fails and names the folder; the first broker keeps serving", async () => {
    using folder = createTempFolder();
    await using first = await startBroker({ dataDir: folder.path });
    const second = await runBroker({ dataDir: folder.path });
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`The data folder ${folder.path} is in use by another broker`);
    expect(second.stderr).not.toMatch(/^\s+at /m);
    await using client = new Client(first.url);
    expect(await client.open("still there")).toBe(true);
  });

  it("a start on a port in use fails, names the address, and leaves the data folder free", async () => {
    using folder = createTempFolder();
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    const run = await runBroker({ dataDir: folder.path, env: { STELE_PORT: port } });
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(new RegExp(`^stele: .*${port} of 127\\.0\\.0\\.1 is taken: .*--port`, "m"));
    server.close();
    await using broker = await startBroker({ dataDir: folder.path, env: { STELE_PORT: port } });
    expect(new URL(broker.url).port).toBe(port);
    expect((await broker.stop()).code).toBe(0);
  });

  it("a start on an address of another machine fails and names the address", async () => {
    using folder = createTempFolder();
    const run = await runBroker({
      dataDir: folder.path,
      env: { STELE_HOST: "192.0.2.1", STELE_ALLOW_ANONYMOUS: "true" },
    }); // RFC 5737: an address that nobody has.
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/^stele: 192\.0\.2\.1 is not an address of this machine\. .*--host/m);
  });

  it.runIf(canMount).each([4, 20, 64])(
    "a start on a disk with %i KiB fails, names the path, and says that the disk is full",
    async (size) => {
      using disk = mountSmallDisk(size);
      const run = await runBroker({ dataDir: join(disk.path, "data") });
      expect(run.code).toBe(1);
      expect(run.stderr).toMatch(new RegExp(`^stele: .*${disk.path}/data.*(space|disk is full)`, "m"));
      expect(run.stderr).not.toMatch(/^\s+at /m);
    },
  );

  it.runIf(process.getuid?.() === 0)("a start on a file of another user fails and names both users", async () => {
    using folder = createTempFolder();
    chownSync(folder.path, 65_534, 65_534);
    await (await startBroker({ dataDir: folder.path })).stop();
    const run = await runBroker({ dataDir: folder.path, shell: 'exec setpriv --reuid 65534 --clear-groups "$@"' });
    expect(run.code).toBe(1);
    expect(run.stderr).toMatch(/^stele: The data folder .*chain\.sqlite belongs to user 0 .* runs as user 65534/m);
  });

  it.runIf(process.getuid?.() === 0)("a broker whose store now belongs to another user stops cleanly", async () => {
    using folder = createTempFolder();
    chownSync(folder.path, 65_534, 65_534);
    const shell = 'exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"';
    await using broker = await startBroker({ dataDir: folder.path, shell });
    chownSync(join(folder.path, "store.sqlite"), 0, 0);
    expect(await broker.stop()).toMatchObject({ code: 0 });
  });

  it("a start fails and names the data folder if its path is a file or lies below a file", async () => {
    using folder = createTempFolder();
    const file = join(folder.path, "file");
    writeFileSync(file, "");
    for (const dataDir of [file, join(file, "data")]) {
      const refusal = await startLocalBroker({ dataDir, log: [] }).catch(String);
      expect(refusal).toContain(`The data folder ${dataDir} cannot be`);
      expect(refusal).not.toContain("chmod");
    }
  });

  it("a start on an unreadable data folder fails and names its path", async () => {
    using folder = createTempFolder();
    const dataDir = join(folder.path, "locked");
    mkdirSync(dataDir);
    chmodSync(dataDir, 0o000);
    // Root can read everything: start the broker as user 65534, who cannot enter the parent folder.
    const isRoot = process.getuid?.() === 0;
    const run = await runBroker({
      dataDir,
      ...(isRoot ? { shell: 'exec setpriv --reuid 65534 --clear-groups "$@"' } : {}),
    });
    expect(run.code).toBe(1);
    expect(run.stderr).toContain(`stele: The data folder ${dataDir} cannot be read and written`);
  });

  it("a start with a truncated signer key fails and names the file", async () => {
    using folder = createTempFolder();
    writeFileSync(join(folder.path, "signer.key"), "0102\n");
    const starting = startLocalBroker({ dataDir: folder.path, log: [] });
    await expect(starting).rejects.toThrow(/signer\.key does not hold 32 bytes/);
  });

  it.each([["chain.sqlite"], ["store.sqlite"]])(
    "a start with a %s that is not a database fails and names the file",
    async (name) => {
      using folder = createTempFolder();
      writeFileSync(join(folder.path, name), "this is not a database ".repeat(1000));
      await expect(startLocalBroker({ dataDir: folder.path, log: [] })).rejects.toThrow(name);
    },
  );
});

describe("settings of the real process", () => {
  it("an unknown variable and an unknown flag are refused by name, and the error suggests the nearest variable", async () => {
    using folder = createTempFolder();
    const run = await runBroker({ dataDir: folder.path, env: { STELE_PROT: "1" }, args: ["--prot", "1"] });
    expect(run.code).toBe(2);
    expect(run.stderr).toContain("STELE_PROT is not a known variable");
    expect(run.stderr).toContain("STELE_PORT");
    expect(run.stderr).toContain('"--prot" is not a known flag');
  });

  const refusedSettings = [
    ["STELE_PORT", "65536"],
    ["STELE_BASE_PATH", "events/"],
    ["STELE_COORDINATION", "some"],
    ["STELE_CALLBACK_ALLOW", "10.0.0.0"],
    ["STELE_CONTENT_BYTES_MAX", "0"],
  ] as const;
  let refusal: Promise<EndedRun>;
  beforeAll(() => {
    refusal = runBroker({ env: Object.fromEntries(refusedSettings) });
  });

  it.each(refusedSettings)(
    "%s=%s is refused with a message that names the setting and the value",
    async (name, value) => {
      const { code, stderr } = await refusal;
      expect(code).toBe(2);
      const [message] = stderr.split("\n").filter((line) => line.includes(name));
      expect(message).toContain(value);
    },
  );

  it("STELE_PORT=http is refused with a message that names the setting and the value", async () => {
    const { code, stderr } = await runBroker({ env: { STELE_PORT: "http" } });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/STELE_PORT.*http/) });
  });

  it("--check-config prints the settings in effect and the source of each, and starts nothing", async () => {
    using folder = createTempFolder();
    const dataDir = join(folder.path, "never made");
    const run = await runBroker({ dataDir, env: { STELE_BASE_PATH: "/x" }, args: ["--check-config", "--host", "::1"] });
    expect(run).toMatchObject({ code: 0, stderr: "" });
    expect(run.stdout).toMatch(/host.*::1.*--host/);
    expect(run.stdout).toMatch(/basePath.*\/x.*STELE_BASE_PATH/);
    await expect(startBroker({ dataDir, args: ["--check-config"] })).rejects.toThrow();
  });

  it("--check-config prints every error and exits with 2", async () => {
    const run = await runBroker({ env: { STELE_PORT: "x", STELE_HOST: "a b" }, args: ["--check-config"] });
    expect(run.code).toBe(2);
    expect(run.stderr).toContain("STELE_PORT");
    expect(run.stderr).toContain("STELE_HOST");
  });

  it("a flag overrides the environment, which overrides the file", async () => {
    using folder = createTempFolder();
    const file = join(folder.path, "stele.json");
    writeFileSync(file, JSON.stringify({ basePath: "/file", extensionPrefix: "file-", logLevel: "error" }));
    const env = { STELE_CONFIG: file, STELE_BASE_PATH: "/env", STELE_EXTENSION_PREFIX: "env-" };
    const args = ["--base-path=/flag"];
    await using broker = await startBroker({ dataDir: join(folder.path, "data"), env, args });
    expect(new URL(broker.url).pathname).toBe("/flag");
    await using client = new Client(broker.url);
    await client.open("x");
    const sent = await client.publish("x", "x", { "env-a": "1" });
    expect((await client.getEvent(sent.eventId)).extensions).toEqual({ "env-a": "1" });
    expect(broker.stdout()).not.toContain('"info"');
  });

  it("--help and --version exit with 0", async () => {
    expect(await runBroker({ args: ["start", "--help"] })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("--data-dir"),
    });
    expect(await runBroker({ args: ["--version"] })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^stele \d/),
    });
  });
});
