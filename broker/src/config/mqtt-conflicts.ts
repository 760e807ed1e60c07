import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

const tlsPort = environmentName("mqttTlsPort");
const files = ["mqttTlsCertificateFile", "mqttTlsKeyFile"] as const;

/** Problems of MQTT settings whose values are valid individually. */
export function mqttConflicts(config: Config): readonly string[] {
  const given = files.filter((name) => config[name] !== "");
  if (config.mqttTlsPort === "off") {
    return given.map((name) => `${environmentName(name)} has no effect without ${tlsPort}`);
  }
  const missing = files.filter((name) => config[name] === "");
  return missing.map((name) => `${environmentName(name)} must be given with ${tlsPort}`);
}
