// The chain of the cluster.
import { anvilCommand, setClock } from "./anvil.mjs";
import { Part } from "./part.mjs";

const host = "127.0.0.1";

/** Starts a chain that keeps its state across restarts. */
export async function startChain({ data, logs, port, register }) {
  const part = new Part("chain", { ...anvilCommand({ folder: data, host, port }), logs, register });
  await part.waitFor(/Listening on/);
  await setClock(`http://${host}:${port}`);
  return { part, url: `ws://${host}:${port}` };
}
