// Starts the chain, the database and the nodes, in this order.
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { chainFiles } from "./anvil.mjs";
import { startChain } from "./chain.mjs";
import { deleteDatabase, startDatabase } from "./database.mjs";
import { describeCluster } from "./describe-cluster.mjs";
import { secretKeyName, startNodes, waitUntilReady } from "./nodes.mjs";
import { Parts } from "./parts.mjs";

const keptPattern = /^(logs|node-\d(\.sh)?)$/;

/** Runs until a signal comes, or the chain or the database ends. */
export async function runCluster({ data, ports, isFresh }) {
  const parts = new Parts();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void parts.end(0));
  try {
    await Promise.all(Object.values(ports).flat().map(checkFree));
    if (isFresh) deleteKept(data);
    await start({ data, ports, parts });
  } catch (error) {
    if (!parts.isEnding) console.error(error.message);
    await parts.end(1);
  }
}

async function start({ data, ports, parts }) {
  const logs = join(data, "logs");
  mkdirSync(logs, { recursive: true });
  const common = { data, logs, register: (part) => parts.register(part) };
  console.error("Starting PostgreSQL and the chain …");
  const chain = await startChain({ ...common, port: ports.chain });
  const database = await startDatabase({ ...common, port: ports.database });
  console.error("Starting the nodes …");
  const nodes = startNodes({ ...common, ports: ports.nodes, database, chain });
  await waitUntilReady(nodes);
  parts.noteStart();
  if (!parts.isEnding) console.log(describeCluster({ chain, database, nodes, logs }));
}

/** Deletes the data of earlier runs, and no other file of the folder. */
function deleteKept(data) {
  deleteDatabase(data);
  mkdirSync(data, { recursive: true });
  const files = [...chainFiles, secretKeyName];
  for (const name of readdirSync(data).filter((entry) => files.includes(entry) || keptPattern.test(entry))) {
    rmSync(join(data, name), { recursive: true });
  }
}

async function checkFree(port) {
  const probe = createServer();
  try {
    await new Promise((settle, fail) => probe.once("error", fail).listen(port, "127.0.0.1", settle));
    await new Promise((settle) => probe.close(settle));
  } catch (error) {
    if (error.code !== "EADDRINUSE") throw error;
    throw new Error(`Port ${port} is taken: stop the program that listens there, or choose other ports; see --help.`, {
      cause: error,
    });
  }
}
