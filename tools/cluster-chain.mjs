// The chain alone, for a container: `node tools/cluster-chain.mjs FOLDER HOST PORT`. Runs until a signal comes or the chain ends.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { anvilCommand, setClock } from "./cluster/anvil.mjs";

const [folder, host, port] = process.argv.slice(2);
const { command, args } = anvilCommand({ folder, host, port });
const chain = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => chain.kill("SIGTERM"));
chain.once("error", ({ message }) => console.error(`anvil cannot be started: ${message}`));
chain.once("close", (code) => process.exit(code ?? 1));
for await (const line of createInterface({ input: chain.stdout })) {
  console.log(line);
  if (line.startsWith("Listening on")) await setClock(`http://127.0.0.1:${port}`);
}
