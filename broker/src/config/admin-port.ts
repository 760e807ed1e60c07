import type { Config } from "./settings.ts";

/** The operators' port if access is on and the settings name none. */
const defaultAdminPort = 8081;

/** A listener for operators. */
export interface AdminPort {
  readonly host: string;
  readonly port: number;
  /** Whether the settings name the port. Otherwise the broker starts without it if another program uses it. */
  readonly isConfigured: boolean;
}

/** The operators' own listener; undefined if they have none. */
export function adminPortOf({
  adminHost: host,
  adminPort,
  access,
}: Pick<Config, "adminHost" | "adminPort" | "access">): AdminPort | undefined {
  if (adminPort === "off" || (adminPort === undefined && access === undefined)) return undefined;
  return { host, port: adminPort ?? defaultAdminPort, isConfigured: adminPort !== undefined };
}

/** Whether the clients' port serves operators too. */
export function servesOperators(config: Pick<Config, "adminHost" | "adminPort" | "access">): boolean {
  return config.access === undefined && adminPortOf(config) === undefined;
}
