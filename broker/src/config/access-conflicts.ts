import { adminPortOf } from "./admin-port.ts";
import type { AccessConfig } from "./access-settings.ts";
import { isLoopback, listensOnLoopbackOnly } from "./derived.ts";
import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

type AccessParts = Pick<Config, "host" | "access" | "allowAnonymous" | "adminHost" | "adminPort" | "console">;

/** Problems of access settings. If other machines reach a broker without access control, the operator must allow that explicitly. */
export function accessConflicts(config: AccessParts): readonly string[] {
  const { access, allowAnonymous } = config;
  if (access !== undefined && allowAnonymous) {
    return [`${environmentName("allowAnonymous")} has no effect if access is configured: set only one of the two`];
  }
  if (access !== undefined) return logInConflicts(access, config.console);
  if (allowAnonymous) return [];
  return openHosts(config).map(
    (name) =>
      `${environmentName(name)} is ${config[name]}, where others reach the broker, and they could do everything: configure "access" (docs/access.md), or allow that by ${environmentName("allowAnonymous")}=true`,
  );
}

function logInConflicts({ tokens }: AccessConfig, console: Config["console"]): readonly string[] {
  if (console === "on" || tokens.every(({ logIn }) => logIn === undefined)) return [];
  return [`access.tokens.logIn has no effect if ${environmentName("console")} is off: set only one of the two`];
}

/** The settings whose addresses other machines reach. */
export function openHosts(config: Omit<AccessParts, "allowAnonymous" | "console">): readonly ("host" | "adminHost")[] {
  const operators = adminPortOf(config);
  return [
    ...(listensOnLoopbackOnly(config) ? [] : (["host"] as const)),
    ...(operators === undefined || isLoopback(operators.host) ? [] : (["adminHost"] as const)),
  ];
}
