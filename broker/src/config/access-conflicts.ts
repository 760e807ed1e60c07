import { adminPortOf } from "./admin-port.ts";
import type { AccessConfig } from "./access-settings.ts";
import { isLoopback, listensOnLoopbackOnly } from "./derived.ts";
import { environmentName } from "./setting.ts";
import type { Config } from "./settings.ts";

type AccessParts = Pick<Config, "host" | "access" | "allowAnonymous" | "adminHost" | "adminPort" | "console">;

/** Problems of the access settings. If other machines can reach a broker, it must have access configured, or the operator must allow anonymous callers. */
export function accessConflicts(config: AccessParts): readonly string[] {
  const { access, allowAnonymous } = config;
  if (access !== undefined && allowAnonymous) {
    return [`${environmentName("allowAnonymous")} has no effect if access is configured: remove one of the two`];
  }
  if (access !== undefined) return logInConflicts(access, config.console);
  if (allowAnonymous) return [];
  return exposedHosts(config).map(
    (name) =>
      `${environmentName(name)} is ${config[name]}, so other machines can reach the broker and do everything: configure "access" (docs/access.md), or set ${environmentName("allowAnonymous")}=true to allow that`,
  );
}

function logInConflicts({ tokens }: AccessConfig, console: Config["console"]): readonly string[] {
  if (console === "on" || tokens.every(({ logIn }) => logIn === undefined)) return [];
  return [`access.tokens.logIn has no effect if ${environmentName("console")} is off: remove one of the two`];
}

/** The settings that let the broker listen where other machines can reach it. */
export function exposedHosts(
  config: Omit<AccessParts, "allowAnonymous" | "console">,
): readonly ("host" | "adminHost")[] {
  const operators = adminPortOf(config);
  return [
    ...(listensOnLoopbackOnly(config) ? [] : (["host"] as const)),
    ...(operators === undefined || isLoopback(operators.host) ? [] : (["adminHost"] as const)),
  ];
}
