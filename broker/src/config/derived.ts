import type { Config } from "./settings.ts";

/** Whether only this machine can reach the broker. */
export function listensOnLoopbackOnly(config: Pick<Config, "host">): boolean {
  return config.host === "localhost" || config.host === "::1" || /^127(\.\d{1,3}){3}$/.test(config.host);
}
