import { connectionProtocols } from "./connection-ports.ts";
import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

/** Protocols that can be served over TLS. The names of their settings begin with these words. */
export const tlsServed = ["http", ...connectionProtocols] as const;
export type TlsServed = (typeof tlsServed)[number];

/** Problems of certificate settings whose values are valid individually. */
export function connectionConflicts(config: Config): readonly string[] {
  const { access } = config;
  const unused =
    access !== undefined && access.certificates.length > 0 && !tlsServed.some((name) => asksClients(config, name));
  return [
    ...tlsServed.flatMap((served) => tlsConflicts(config, served)),
    ...portConflicts(config),
    ...(unused ? [`access.certificates has no effect without one of ${caSettings.join(", ")}`] : []),
  ];
}

/** Ports that the settings give to two listeners. 0 is not a port: it picks a free one. */
function portConflicts(config: Config): readonly string[] {
  const { host, adminHost } = config;
  const names = ["port", "mqttPort", "mqttTlsPort", "stompPort", "stompTlsPort", "adminPort"] as const;
  const listeners = names
    .map((name) => ({ name, port: config[name], host: name === "adminPort" ? adminHost : host }))
    .filter(({ port }) => typeof port === "number" && port !== 0);
  return listeners.flatMap(({ name, port, host: own }, index) => {
    const other = listeners.slice(0, index).find((earlier) => earlier.port === port && earlier.host === own);
    return other === undefined ? [] : [`${environmentName(name)} is ${port}, like ${environmentName(other.name)}`];
  });
}

const caSettings = tlsServed.map((served) => environmentName(`${served}TlsClientCaFile`));

/** Whether the protocol is served over TLS. */
export function isSecured(config: Config, served: TlsServed): boolean {
  return served === "http" ? config.httpTlsCertificateFile !== "" : config[`${served}TlsPort`] !== "off";
}

/** Whether clients of the protocol must show a certificate. */
export function asksClients(config: Config, served: TlsServed): boolean {
  return isSecured(config, served) && config[`${served}TlsClientCaFile`] !== "";
}

function tlsConflicts(config: Config, served: TlsServed): readonly string[] {
  const needed = [`${served}TlsCertificateFile`, `${served}TlsKeyFile`] as const;
  const files = [...needed, `${served}TlsClientCaFile`] as const;
  const cause = environmentName(served === "http" ? "httpTlsCertificateFile" : `${served}TlsPort`);
  if (!isSecured(config, served)) {
    const given = files.filter((name) => config[name] !== "");
    return given.map((name) => `${environmentName(name)} has no effect without ${cause}`);
  }
  const missing = needed.filter((name) => config[name] === "");
  return missing.map((name) => `${environmentName(name)} must be given with ${cause}`);
}
