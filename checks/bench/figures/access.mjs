import { generateKeyPairSync, sign } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { createDataFolder, removeDataFolder, startBroker, startGuardedBroker, topic } from "../lib/servers.mjs";
import { waitFor } from "../lib/wait-for.mjs";
import { manyOf, repeat, shortDurations } from "../lib/rounds.mjs";
import { measureWrongLogIns } from "./access/wrong-log-ins.mjs";

const connections = 64;
/** Connections of the tenant whose latency is measured while the greedy tenant publishes. */
const quietConnections = 4;
const greedyConnections = 100;
/** Low, because accepted publishes slow other tenants down, whoever sends them. Only the refused publishes should cost nothing. */
const greedyPublishesPerSecond = 50;
const besideGreedy = `a tenant, while another tenant with ${greedyConnections} connections exceeds its quota of ${greedyPublishesPerSecond} publishes a second`;
const issuer = "https://issuer.example";
const roles = { member: [{ actions: ["open", "publish", "read"] }] };

/** What access control costs, and what a greedy tenant and wrong log-ins cost others. */
export const access = {
  name: "access",
  async measure(context) {
    const folders = Array.from({ length: 3 }, () => createDataFolder(context.resultsDir));
    const { credentialOf, config } = createIssuer(join(folders[1], "issuer.json"));
    const servers = [];
    try {
      const quotas = { tenants: { greedy: { publishesPerSecond: greedyPublishesPerSecond } } };
      const settings = { roles, quotas, tokens: [config] };
      const open = await startBroker({ main: context.main, dataDir: folders[0] });
      servers.push(open);
      const guarded = await startGuardedBroker({ main: context.main, dataDir: folders[1], access: settings });
      servers.push(guarded.server);
      // A fuller store takes longer for each event, so the broker for each kind of credential has its own store.
      const { server: tokens } = await startGuardedBroker({
        main: context.main,
        dataDir: folders[2],
        access: settings,
      });
      servers.push(tokens);
      const key = await guarded.create("--principal", "quiet", "--role", "member");
      const greedyKey = await guarded.create("--principal", "p", "--tenant", "greedy", "--role", "member");
      await waitFor("the broker accepts the quiet tenant's key", () => opens(guarded.server, key));
      await waitFor("the broker accepts the greedy tenant's key", () => opens(guarded.server, greedyKey));
      const token = credentialOf("quiet");
      await waitFor("the broker accepts the token", () => opens(tokens, token));
      const parties = { open, guarded: guarded.server, tokens, key, token, greedyKey };
      return [
        ...(await measureCost(context, parties)),
        ...(await measureGreed(context, parties)),
        ...(await measureWrongLogIns(context, { server: guarded.server, credential: key })),
      ];
    } finally {
      for (const server of servers) await server.stop();
      folders.forEach(removeDataFolder);
    }
  },
};

/**
 * Runs the same load without access, with a key and with a token. The next round begins with another of the three. The rounds are short and many,
 * because within a minute the machine's speed varies by more than access may cost.
 */
async function measureCost(context, { open, guarded, tokens, key, token }) {
  const plan = { connections, ...shortDurations };
  const runs = [
    ["none", () => publishLoad(open, plan)],
    ["key", () => publishLoad(guarded, { ...plan, credential: key })],
    ["token", () => publishLoad(tokens, { ...plan, credential: token })],
  ];
  const rounds = await repeat(manyOf(context), async () => {
    const found = {};
    for (const [name, run] of runs) found[name] = await run();
    runs.push(runs.shift());
    return found;
  });
  const name = (what) => `publish, ${connections} connections: ${what}`;
  const ratio = (kind, field) => rounds.map((round) => round[kind][field] / round.none[field]);
  return [
    { name: name("rate without access"), unit: "events/s", values: rounds.map(({ none }) => none.eventsPerSecond) },
    {
      name: name("rate with a key, as a share of the same without access"),
      unit: "",
      values: ratio("key", "eventsPerSecond"),
      atLeast: 0.95,
    },
    {
      name: name("rate with a token, as a share of the same without access"),
      unit: "",
      values: ratio("token", "eventsPerSecond"),
      atLeast: 0.9,
    },
    {
      name: name("processor time with a key, as a share of the same without access"),
      unit: "",
      values: ratio("key", "serverCpuUsPerEvent"),
      below: 1.05,
    },
    {
      name: name("processor time with a token, as a share of the same without access"),
      unit: "",
      values: ratio("token", "serverCpuUsPerEvent"),
      below: 1.1,
    },
  ].map(toFigure);
}

/** Loads the broker as one tenant alone, then together with a tenant that publishes over 100 connections without a pause. */
async function measureGreed(context, { guarded, key, greedyKey }) {
  const plan = { connections: quietConnections, ...context.durations };
  const quiet = () => publishLoad(guarded, { ...plan, credential: key });
  const greedy = () =>
    publishLoad(guarded, { ...plan, connections: greedyConnections, credential: greedyKey, isGreedy: true });
  const rounds = await repeat(context, async () => {
    const alone = await quiet();
    const [beside, greedyRun] = await Promise.all([quiet(), greedy()]);
    return { alone, beside, greedyRun };
  });
  return [
    { name: `${besideGreedy}: median alone`, unit: "ms", values: rounds.map(({ alone }) => alone.p50Ms) },
    {
      name: `${besideGreedy}: median ÷ median without it`,
      unit: "",
      values: rounds.map(({ alone, beside }) => beside.p50Ms / alone.p50Ms),
      below: 1.2,
    },
    {
      name: `${besideGreedy}: p99 ÷ p99 without it`,
      unit: "",
      values: rounds.map(({ alone, beside }) => beside.p99Ms / alone.p99Ms),
    },
    {
      name: `${besideGreedy}: publishes of the other, as a share of its quota`,
      unit: "",
      values: rounds.map(({ greedyRun }) => greedyRun.eventsPerSecond / greedyPublishesPerSecond),
      below: 1.05,
    },
    {
      name: `${besideGreedy}: refusals of the other`,
      unit: "/s",
      values: rounds.map(({ greedyRun }) => greedyRun.refusals / (greedyRun.elapsedMs / 1000)),
    },
  ].map(toFigure);
}

/** An issuer of tokens, whose public key the broker reads from the file `keys`. */
function createIssuer(keys) {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(keys, JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", use: "sig" }] }));
  const credentialOf = (sub) => {
    const claims = { iss: issuer, aud: "stele", sub, exp: Math.floor(Date.now() / 1000) + 24 * 3600 };
    const head = `${toPart({ alg: "ES256", kid: "one" })}.${toPart(claims)}`;
    const signature = sign("sha256", Buffer.from(head), { key: privateKey, dsaEncoding: "ieee-p1363" });
    return `${head}.${signature.toString("base64url")}`;
  };
  const config = { issuer, audience: "stele", algorithms: ["ES256"], keys, defaultRoles: ["member"] };
  return { credentialOf, config };
}

/** Encodes a part of a JSON Web Token. */
function toPart(value) {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** Opens the topic; returns whether the broker accepted the credential. */
async function opens({ port }, credential) {
  const headers = { authorization: `Bearer ${credential}` };
  const response = await fetch(`http://127.0.0.1:${port}/rest/open?topic=${topic}`, { headers });
  return (await response.json()) === true;
}
