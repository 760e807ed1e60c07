export { type RunningServer, type ServerOptions, startServer } from "./compose/start-server.ts";
export { loadConfig, type LoadOptions, type LoadOutcome, type Secrets } from "./config/load-config.ts";
export type { Config } from "./config/settings.ts";
export { createLogger, type LoggerOptions } from "./telemetry/logger.ts";
