import type { Config } from "./config/settings.ts";
import type { HttpServer } from "./gateway/http-server.ts";

type Place = Pick<Config, "host" | "port">;

/** Why a place cannot be listened at and what to do, by the system's code. */
const refusals: ReadonlyMap<string, (place: Place) => string> = new Map([
  [
    "EADDRINUSE",
    ({ host, port }) =>
      `Port ${port} of ${host} is taken: end what listens there, or choose another one by --port or STELE_PORT.`,
  ],
  [
    "EACCES",
    ({ host, port }) =>
      `Port ${port} of ${host} may not be used by this user: systems keep ports below 1024 for root. Choose another one by --port or STELE_PORT.`,
  ],
  [
    "EADDRNOTAVAIL",
    ({ host }) =>
      `${host} is not an address of this machine. Choose one by --host or STELE_HOST: 127.0.0.1 serves this machine, 0.0.0.0 everyone.`,
  ],
  [
    "ENOTFOUND",
    ({ host }) =>
      `${host} is a name that this machine cannot resolve. Choose another one, or an address, by --host or STELE_HOST.`,
  ],
]);

/** Answers the base URL. @throws Error that says why not and what to do. */
export async function listen(server: HttpServer, { host, port }: Place): Promise<string> {
  try {
    return await server.listen({ host, port });
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    const refusal = refusals.get(code);
    throw refusal === undefined ? cause : new Error(refusal({ host, port }), { cause });
  }
}
