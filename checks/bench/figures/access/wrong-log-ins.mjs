import { once } from "node:events";
import { createServer } from "node:net";
import { publishLoad, wrongLogIns } from "../../lib/load.mjs";
import { toFigure } from "../../lib/figure.mjs";
import { startBareRefuser } from "../../lib/servers.mjs";
import { manyOf, repeat, shortDurations } from "../../lib/rounds.mjs";

const perSecond = 10_000;
/** Connections of the honest clients, which publish with a pause or without one. */
const connections = 4;
const pauseMs = 20;
const wrong = `${perSecond} wrong log-ins a second from one address`;
const flood = { from: "127.0.0.2", perSecond, measureMs: shortDurations.warmUpMs + shortDurations.measureMs };

/** What wrong log-ins from one address cost the broker, and its other clients. */
export async function measureWrongLogIns(context, { server, credential }) {
  const plan = { connections, ...shortDurations, credential };
  const refuser = await startBareRefuser();
  try {
    return [
      ...(await measureCost(context, { server, refuser })),
      ...(await measureOthers(context, { server, plan: { ...plan, pauseMs } })),
      ...(await measureOthers(context, { server, plan })),
    ].map(toFigure);
  } finally {
    await refuser.stop();
  }
}

/** The processor time of a wrong log-in, while the server has no other clients. */
async function measureCost(context, { server, refuser }) {
  const rounds = await repeat(manyOf(context), async () => {
    return { bare: await wrongLogIns(refuser, flood), broker: await wrongLogIns(server, flood) };
  });
  const costs = (who) => rounds.map((round) => round[who].serverCpuUsPerEvent);
  const shares = rounds.map(({ bare, broker }) => broker.serverCpuUsPerEvent / bare.serverCpuUsPerEvent);
  return [
    { name: `${wrong}: ended`, unit: "/s", values: rounds.map(({ broker }) => broker.perSecond) },
    { name: `${wrong}: processor time of each`, unit: "µs", values: costs("broker") },
    { name: `${wrong}: processor time of each, at a bare server that refuses all`, unit: "µs", values: costs("bare") },
    { name: `${wrong}: processor time, as a share of the bare server's`, unit: "", values: shares },
  ];
}

/**
 * How much slower others publish during an attack on the broker than during the same attack on a closed port. In both cases, the
 * attacker itself keeps a processor of this machine busy.
 */
async function measureOthers(context, { server, plan }) {
  const nobody = { port: await findClosedPort(), cpuSeconds: 0 };
  const rounds = await repeat(manyOf(context), async () => {
    const [elsewhere] = await Promise.all([publishLoad(server, plan), wrongLogIns(nobody, flood)]);
    const [beside] = await Promise.all([publishLoad(server, plan), wrongLogIns(server, flood)]);
    return { elsewhere, beside };
  });
  const load = plan.pauseMs === undefined ? "without a pause" : `every ${plan.pauseMs} ms`;
  const name = (what) =>
    `during ${perSecond} wrong log-ins a second, ${connections} connections that publish ${load}: ${what}, as a share of the same during an attack on a closed port`;
  const shares = (key) => rounds.map(({ elsewhere, beside }) => beside[key] / elsewhere[key]);
  return [
    { name: name("rate"), unit: "", values: shares("eventsPerSecond"), atLeast: 0.8 },
    { name: name("median"), unit: "", values: shares("p50Ms"), below: 1.2 },
  ];
}

/** A port where nobody listens. */
async function findClosedPort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}
