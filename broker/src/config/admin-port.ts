import type { Config } from "./settings.ts";

/** The operators' port where access is on and none is chosen. */
const defaultAdminPort = 8081;

/** A listener for operators. */
export interface AdminPort {
  readonly host: string;
  readonly port: number;
  /** Whether the operator asked for it; else the broker does without where it is taken. */
  readonly isChosen: boolean;
}

/** Undefined where operators have no listener of their own. */
export function adminPortOf({
  adminHost: host,
  adminPort,
  access,
}: Pick<Config, "adminHost" | "adminPort" | "access">): AdminPort | undefined {
  if (adminPort === "off" || (adminPort === undefined && access === undefined)) return undefined;
  return { host, port: adminPort ?? defaultAdminPort, isChosen: adminPort !== undefined };
}

/** Whether the port of the clients serves operators too. */
export function servesOperators(config: Pick<Config, "adminHost" | "adminPort" | "access">): boolean {
  return config.access === undefined && adminPortOf(config) === undefined;
}
