// The flags of `npm run cluster`.
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../prepare.mjs";

export const usage = `Usage: npm run cluster -- [flags]

Starts three nodes of one broker on this machine, with their own PostgreSQL and chain (anvil). Ctrl-C ends all of them; the next start continues with
the same data. When a node ends, the others continue, and the command that starts it again is printed. When PostgreSQL or the chain ends, all of them
end. PostgreSQL must be installed; anvil comes with the packages.

  --nodes N            how many nodes, 1 to 9 (default 3)
  --port N             port of the first node; the others take the next ones (default 8080)
  --chain-port N       port of the chain (default 8545)
  --database-port N    port of PostgreSQL (default 54320)
  --data FOLDER        folder of all data (default data/cluster)
  --fresh              delete that data first
  --help, -h           print this text
`;

const options = {
  nodes: { type: "string", default: "3" },
  port: { type: "string", default: "8080" },
  "chain-port": { type: "string", default: "8545" },
  "database-port": { type: "string", default: "54320" },
  data: { type: "string", default: "data/cluster" },
  fresh: { type: "boolean", default: false },
  help: { type: "boolean", short: "h", default: false },
};

const nodesMax = 9;
const portMax = 65_535;

/** Parses the flags. Throws an error that names a wrong flag. */
export function readOptions(argv) {
  const { values } = parseArgs({ args: argv, options });
  const nodes = readNumber(values, "nodes", nodesMax);
  return {
    isHelp: values.help,
    isFresh: values.fresh,
    data: resolve(root, values.data),
    ports: findPorts({
      nodes,
      first: readNumber(values, "port", portMax - nodes + 1),
      chain: readNumber(values, "chain-port", portMax),
      database: readNumber(values, "database-port", portMax),
    }),
  };
}

function readNumber(values, name, max) {
  const number = Number(values[name]);
  if (Number.isInteger(number) && number >= 1 && number <= max) return number;
  throw new Error(`--${name}: "${values[name]}" is not an integer from 1 to ${max}`);
}

function findPorts({ nodes, first, chain, database }) {
  const ports = { nodes: Array.from({ length: nodes }, (_, index) => first + index), chain, database };
  const all = [...ports.nodes, chain, database];
  const repeated = all.find((port, index) => all.indexOf(port) !== index);
  if (repeated !== undefined) throw new Error(`port ${repeated} is used twice: choose another one`);
  return ports;
}
