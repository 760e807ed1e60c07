import { isIP } from "node:net";

/** The loopback address at which this machine reaches its own listener on a wildcard address (0.0.0.0 or ::); undefined for any other host. */
export function loopbackOf(host: string): string | undefined {
  if (host === "0.0.0.0") return "127.0.0.1";
  return isIP(host) === 6 && /^[0:]+$/.test(host) ? "::1" : undefined;
}

/** host:port, with brackets around an IPv6 address. */
export function toHostPort(host: string, port: number): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}
