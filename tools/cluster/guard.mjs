// Ends the processes that its parent leaves behind. It reads process ids from its standard input. If the input ends without the word `done`,
// the parent was killed.
import { createInterface } from "node:readline";

const graceMs = 10_000;
const pids = new Set();
let isDone = false;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "done") isDone = true;
  else pids.add(Number(line));
}
if (!isDone) {
  end("SIGTERM");
  setTimeout(() => end("SIGKILL"), graceMs);
}

function end(signal) {
  for (const pid of pids) {
    try {
      process.kill(pid, signal);
    } catch {
      pids.delete(pid);
    }
  }
}
