import { createHmac, randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { Cluster } from "../harness/cluster.ts";
import { hasPostgres, titleOf } from "../harness/postgres.ts";
import type { Attempt, Receiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { useReceivers } from "../harness/use.ts";
import { embeddedWorld, type RunningWorld } from "../harness/world.ts";

const secretBytes = Buffer.from("a victim's secret of 32 bytes ..");
const secret = `whsec_${secretBytes.toString("base64")}`;
/** The secret in the forms in which it might leak: as given, and decoded. */
const traces = [secret, secret.slice("whsec_".length), secretBytes.toString(), secretBytes.toString("hex")];
const othersRights = 0o077;

/** Whether an attempt is signed with the victim's secret. */
function isSigned({ headers, body }: Attempt): boolean {
  const { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature } = headers;
  const hmac = createHmac("sha256", secretBytes)
    .update(`${String(id)}.${String(timestamp)}.`)
    .update(body);
  return signature === `v1,${hmac.digest("base64")}`;
}

const signatures = (receiver: Receiver) =>
  receiver.attempts.map((attempt) => (isSigned(attempt) ? "signed" : (attempt.headers["webhook-signature"] ?? "none")));

describe("the secret of a subscription", () => {
  const start = useReceivers();
  let world: RunningWorld;

  beforeAll(async () => {
    world = await embeddedWorld.start();
    await world.client.open("secrets");
  });
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]();
  });

  const subscribe = (params: Readonly<Record<string, string>>) =>
    world.client.subscribe({ topic: "secrets", ...params });
  const publish = (content: string) => world.client.publish("secrets", content);
  const openStore = () => {
    const store = new DatabaseSync(join(world.dataDir, "store.sqlite"));
    // In this process, statements outlive the closed database. With a write-ahead log, their lock would keep the broker out.
    store.exec("PRAGMA journal_mode = DELETE");
    return store;
  };

  it("a secret signs no callback after an attacker who knows the subscription's identifier has changed the url", async () => {
    const [victim, stranger] = [await start(), await start()];
    const subscriptionId = await subscribe({ url: victim.url, secret });
    await publish("for the victim");
    await victim.waitForCount(1);
    expect(signatures(victim)).toEqual(["signed"]);
    await subscribe({ url: stranger.url, subscriptionId });
    await publish("for the stranger");
    await stranger.waitForCount(1);
    expect(signatures(stranger)).toEqual(["none"]);
    await subscribe({ url: victim.url, subscriptionId });
    await publish("after the attacker restored the url");
    await victim.waitForCount(2);
    expect(signatures(victim)).toEqual(["signed", "none"]);
    await world.client.unSubscribe(subscriptionId);
  });

  it("a secret stays after a resubscribe with the same url, and signs callbacks at a new url if the client sends it again", async () => {
    const [old, moved] = [await start(), await start()];
    const subscriptionId = await subscribe({ url: old.url, secret });
    await subscribe({ url: old.url, subscriptionId });
    await publish("at the old url");
    await old.waitForCount(1);
    await subscribe({ url: moved.url, subscriptionId, secret });
    await publish("at the new url");
    await moved.waitForCount(1);
    expect([signatures(old), signatures(moved)]).toEqual([["signed"], ["signed"]]);
    await world.client.unSubscribe(subscriptionId);
  });

  it("a secret is in no file of the data folder, before and after a stop, and only the owner can read the key that encrypts it", async () => {
    const subscriptionId = await subscribe({ url: "http://127.0.0.1:9999/", secret });
    expect(filesThatHold(world.dataDir)).toEqual([]);
    expect(statSync(join(world.dataDir, "secrets.key")).mode & othersRights).toBe(0);
    await world.stop();
    expect(filesThatHold(world.dataDir)).toEqual([]);
    await world.resume();
    await world.client.unSubscribe(subscriptionId);
  });

  it("a secret still signs callbacks after a start with the new and the old key, and then after one with only the new key", async () => {
    const receiver = await start();
    const subscriptionId = await subscribe({ url: receiver.url, secret });
    const file = join(world.dataDir, "secrets.key");
    const newKey = randomBytes(32).toString("hex");
    for (const [index, keys] of [`# new\n${newKey}\n\n${readFileSync(file, "utf8")}`, newKey].entries()) {
      await world.stop();
      writeFileSync(file, keys);
      await world.resume();
      await publish(`under key file ${index}`);
      await receiver.waitForCount(index + 1);
    }
    expect(signatures(receiver)).toEqual(["signed", "signed"]);
    await world.client.unSubscribe(subscriptionId);
  });

  it("a secret that is moved to another row, changed, stored in plain text or without its key stops delivery until the client sends it again", async () => {
    const kinds = ["moved", "changed", "plain", "kept"] as const;
    const receivers = await Promise.all(kinds.map(() => start()));
    const ids: string[] = [];
    for (const { url } of receivers) ids.push(await subscribe({ url, secret }));
    await world.stop();
    {
      using store = openStore();
      const rows = store.prepare("SELECT id, secret FROM subscriptions").all() as { id: string; secret: string }[]; // Both columns are text.
      const sealedOf = (index: number) => rows.find(({ id }) => id === ids[index])?.secret ?? "";
      const set = (index: number, text: string) =>
        store.prepare("UPDATE subscriptions SET secret = ? WHERE id = ?").run(text, ids[index] ?? "");
      set(0, sealedOf(3));
      set(1, `${sealedOf(1).slice(0, -8)}AAAAAAAA`);
      set(2, secret);
    }
    await world.resume();
    await publish("one");
    await receivers[3]?.waitForCount(1);
    expect(receivers.map(signatures)).toEqual([[], [], [], ["signed"]]);
    expect(world.broker.stdout()).toMatch(/subscriptions not delivered/);

    await world.stop();
    rmSync(join(world.dataDir, "secrets.key"));
    await world.resume();
    await publish("two");
    for (const [index, { url }] of receivers.entries()) {
      await expect(subscribe({ url, subscriptionId: ids[index] ?? "" })).rejects.toMatchObject({ code: 200001 });
    }
    expect(receivers.map(signatures)).toEqual([[], [], [], ["signed"]]);
    for (const [index, receiver] of receivers.entries()) {
      await subscribe({ url: receiver.url, subscriptionId: ids[index] ?? "", secret });
      await receiver.waitForCount(2);
    }
    expect(new Set(receivers.flatMap(signatures))).toEqual(new Set(["signed"]));
    const output = world.broker.stdout() + world.broker.stderr();
    for (const trace of traces) expect(output).not.toContain(trace);
    for (const id of ids) await world.client.unSubscribe(id);
  });
});

describe.runIf(hasPostgres)(titleOf("nodes that share a database"), () => {
  const start = useReceivers();

  it("nodes refuse a secret without a shared key file, and encrypt the secret with one", async () => {
    using folder = createTempFolder();
    await using cluster = await Cluster.prepare({ nodeCount: 2 });
    const [one, other] = cluster.nodes;
    if (one === undefined || other === undefined) throw new Error("no nodes");
    const receiver = await start();
    const keyFile = join(folder.path, "secrets.key");
    writeFileSync(keyFile, randomBytes(32).toString("base64"), { mode: 0o600 });
    {
      const { STELE_SECRET_KEY_FILE: _, ...env } = one.options.env;
      await using broker = await startBroker({ dataDir: one.options.dataDir, env });
      await using client = new Client(broker.url);
      await until("the node is ready", () => client.isReady());
      await client.open("secrets");
      const refused = client.subscribe({ topic: "secrets", url: receiver.url, secret });
      await expect(refused).rejects.toThrow(/STELE_SECRET_KEY_FILE/);
      expect(existsSync(join(one.options.dataDir, "secrets.key"))).toBe(false);
      await broker.stop();
    }
    await cluster.resume();
    await one.client.subscribe({ topic: "secrets", url: receiver.url, secret });
    const rows = JSON.stringify(await cluster.database.query("SELECT subscriptions::text FROM subscriptions"));
    expect(rows).toContain("v1:");
    for (const trace of traces) expect(rows).not.toContain(trace);
    await one.kill();
    await other.client.publish("secrets", "delivered by the other node");
    await receiver.waitForCount(1, { timeoutMs: 30_000 });
    expect(signatures(receiver)).toEqual(["signed"]);
  });
});

/** Names of the files that contain the secret in any form. */
function filesThatHold(folder: string): readonly string[] {
  return readdirSync(folder).filter((name) => {
    const bytes = readFileSync(join(folder, name));
    return traces.some((trace) => bytes.includes(trace));
  });
}
