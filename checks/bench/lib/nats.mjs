import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { natsSubject } from "../load/nats-connection.mjs";
import { Child } from "./child.mjs";
import { findProgram } from "./programs.mjs";
import { Server } from "./servers.mjs";

const streamTimeoutMs = 5000;

/** The file of nats-server; undefined if it is not installed. */
export function findNatsServer() {
  return findProgram("nats-server", "BENCH_NATS_SERVER");
}

/**
 * Starts NATS with JetStream, which keeps its stream in files and syncs them before it acknowledges a message.
 * @param {{ readonly file: string, readonly dataDir: string }} options
 */
export async function startNats({ file, dataDir }) {
  const config = join(dataDir, "nats.conf");
  const jetStream = `jetstream { store_dir: ${JSON.stringify(join(dataDir, "jetstream"))}, sync_interval: always }`;
  writeFileSync(config, `listen: "127.0.0.1:-1"\n${jetStream}\n`);
  const child = new Child(["-c", config], { command: file });
  const [, port] = await child.waitFor(/Listening for client connections on 127\.0\.0\.1:(\d+)/);
  await child.waitFor(/Server is ready/);
  await createStream(Number(port));
  return new Server(child, Number(port));
}

async function createStream(port) {
  const stream = { name: "bench", subjects: [natsSubject], storage: "file", num_replicas: 1 };
  const answer = await ask(port, "$JS.API.STREAM.CREATE.bench", JSON.stringify(stream));
  if (!answer.includes('"created"')) throw new Error(`JetStream made no stream: ${answer}`);
}

/** Sends one request on a new connection, and returns the reply. */
async function ask(port, subject, body) {
  const signal = AbortSignal.timeout(streamTimeoutMs);
  const socket = connect({ host: "127.0.0.1", port }).setEncoding("utf8");
  try {
    await once(socket, "connect", { signal });
    socket.write(`CONNECT {"verbose":false}\r\nSUB answers 1\r\nPUB ${subject} answers ${body.length}\r\n${body}\r\n`);
    let received = "";
    while (!/^MSG answers .*\r\n.+\r\n/m.test(received)) received += (await once(socket, "data", { signal }))[0];
    return received.slice(received.indexOf("MSG answers"));
  } finally {
    socket.destroy();
  }
}
