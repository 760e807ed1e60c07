import { type ConnectionProtocol, connectionProtocols } from "./connection-ports.ts";
import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

/** Problems of settings of MQTT and STOMP whose values are valid individually. */
export function connectionConflicts(config: Config): readonly string[] {
  return connectionProtocols.flatMap((protocol) => tlsConflicts(config, protocol));
}

function tlsConflicts(config: Config, protocol: ConnectionProtocol): readonly string[] {
  const files = [`${protocol}TlsCertificateFile`, `${protocol}TlsKeyFile`] as const;
  const tlsPort = environmentName(`${protocol}TlsPort`);
  if (config[`${protocol}TlsPort`] === "off") {
    const given = files.filter((name) => config[name] !== "");
    return given.map((name) => `${environmentName(name)} has no effect without ${tlsPort}`);
  }
  const missing = files.filter((name) => config[name] === "");
  return missing.map((name) => `${environmentName(name)} must be given with ${tlsPort}`);
}
