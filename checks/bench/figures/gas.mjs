import { Anvil } from "../lib/anvil.mjs";
import { toFigure } from "../lib/figure.mjs";
import { findGeth, Geth } from "../lib/geth.mjs";
import { Registry, sender } from "../lib/registry.mjs";
import { createDataFolder, removeDataFolder } from "../lib/servers.mjs";

const eventsPerTransaction = 100;
const topicCounts = [1, 10, 100];

/** Gas of a 256-byte event, by the number of topics in a transaction, on two implementations of the EVM. */
export const gas = {
  name: "gas",
  async measure(context) {
    return [...(await measureOnAnvil()), ...(await measureOnGeth(context))];
  },
};

async function measureOnAnvil() {
  const anvil = await Anvil.start([]);
  try {
    return await measureOn("anvil", anvil.url);
  } finally {
    await anvil.stop();
  }
}

async function measureOnGeth({ resultsDir, leaveOut }) {
  const file = findGeth();
  if (file === undefined) {
    leaveOut("gas on geth: geth is neither on the PATH nor named by BENCH_GETH");
    return [];
  }
  const dataDir = createDataFolder(resultsDir);
  const geth = await Geth.start({ file, dataDir });
  try {
    await geth.fund(sender.address);
    return await measureOn("geth", geth.url);
  } finally {
    await geth.stop();
    removeDataFolder(dataDir);
  }
}

async function measureOn(node, url) {
  const registry = await Registry.deploy(url);
  const names = Array.from({ length: Math.max(...topicCounts) }, (_, index) => `bench/topic/${index}`);
  const opening = await registry.open(names);
  const figures = [figureOf(`${node}, opening ${names.length} topics: gas per topic`, opening / names.length)];
  figures.push(figureOf(`${node}, 1 event: gas`, await registry.publish(names.slice(0, 1), 1)));
  for (const topics of topicCounts) {
    const used = await registry.publish(names.slice(0, topics), eventsPerTransaction / topics);
    const title = topics === 1 ? "1 topic" : `${topics} topics`;
    figures.push(
      figureOf(`${node}, ${eventsPerTransaction} events of ${title}: gas per event`, used / eventsPerTransaction),
    );
  }
  return figures;
}

function figureOf(name, value) {
  return toFigure({ name, unit: "gas", values: [value] });
}
