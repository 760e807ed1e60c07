export { runKeys } from "./compose/keys.ts";
export { runRoles } from "./compose/roles.ts";
export { type RunningServer, type ServerOptions, startServer } from "./compose/start-server.ts";
export { loadConfig, type LoadOptions, type LoadOutcome, type Secrets } from "./config/load-config.ts";
export type { Config } from "./config/settings.ts";
export { createLogger, type LoggerOptions } from "./telemetry/logger.ts";
export { runVerify } from "./verify/run-verify.ts";
