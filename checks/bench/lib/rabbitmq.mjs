import { realpathSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Child } from "./child.mjs";
import { findFreePorts } from "./free-ports.mjs";
import { findProgram } from "./programs.mjs";
import { Server } from "./servers.mjs";

/** Debian's script on the PATH. It changes the user, and runs the program of the same name in its own folder. */
const wrapper = "rabbitmq-script-wrapper";

/** The file of rabbitmq-server, past Debian's wrapper; undefined if it is not installed. */
export function findRabbitMq() {
  const file = findProgram("rabbitmq-server", "BENCH_RABBITMQ_SERVER");
  if (file === undefined) return undefined;
  const real = realpathSync(file);
  return basename(real) === wrapper ? join(dirname(real), "rabbitmq-server") : real;
}

/** RabbitMQ with its STOMP plug-in, and the port mapper that Erlang needs. */
class RabbitMq extends Server {
  #mapper;

  constructor({ child, port, mapper }) {
    super(child, port);
    this.#mapper = mapper;
  }

  async stop() {
    await super.stop();
    await this.#mapper.stop();
  }
}

/**
 * Starts RabbitMQ on the loopback address, with all its files in the data folder.
 * @param {{ readonly file: string, readonly dataDir: string }} options
 */
export async function startRabbitMq({ file, dataDir }) {
  const [port, mapperPort, nodePort, amqpPort] = await findFreePorts(4);
  const config = join(dataDir, "rabbitmq.conf");
  const listeners = { "listeners.tcp.1": amqpPort, "stomp.listeners.tcp.1": port };
  const lines = Object.entries(listeners).map(([name, value]) => `${name} = 127.0.0.1:${value}\n`);
  writeFileSync(config, lines.join(""));
  const plugins = join(dataDir, "enabled_plugins");
  writeFileSync(plugins, "[rabbitmq_stomp].\n");
  const mapperEnv = { ERL_EPMD_ADDRESS: "127.0.0.1", ERL_EPMD_PORT: String(mapperPort) };
  const mapper = new Child(["-port", String(mapperPort), "-address", "127.0.0.1"], { command: "epmd" });
  const env = {
    ...mapperEnv,
    HOME: dataDir,
    RABBITMQ_ALLOW_INPUT: "1", // the script execs the server instead of running it as a child
    RABBITMQ_CONF_ENV_FILE: join(dataDir, "no-environment"),
    RABBITMQ_CONFIG_FILE: config,
    RABBITMQ_DIST_PORT: String(nodePort),
    RABBITMQ_ENABLED_PLUGINS_FILE: plugins,
    RABBITMQ_LOG_BASE: join(dataDir, "log"),
    RABBITMQ_MNESIA_BASE: join(dataDir, "mnesia"),
    RABBITMQ_NODENAME: `bench-${nodePort}@localhost`,
    RABBITMQ_SERVER_START_ARGS: "-noinput -kernel inet_dist_use_interface {127,0,0,1}",
  };
  const child = new Child([], { command: file, env });
  try {
    await child.waitFor(/completed with \d+ plugins/);
  } catch (error) {
    await mapper.stop();
    throw error;
  }
  return new RabbitMq({ child, port, mapper });
}
