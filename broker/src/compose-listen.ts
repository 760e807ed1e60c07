import { once } from "node:events";
import { createServer } from "node:net";
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

/** Listens for a moment. @throws Error that says why that cannot be and what to do. */
export async function checkPlace({ host, port }: Place): Promise<void> {
  const probe = createServer();
  await explained({ host, port }, async () => {
    probe.listen({ host, port });
    await once(probe, "listening");
  });
  probe.close();
  await once(probe, "close");
}

/** Answers the base URL. @throws Error that says why not and what to do. */
export async function listen(server: HttpServer, { host, port }: Place): Promise<string> {
  return explained({ host, port }, () => server.listen({ host, port }));
}

async function explained<Result>(place: Place, action: () => Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    const refusal = refusals.get(code);
    throw refusal === undefined ? cause : new Error(refusal(place), { cause });
  }
}
