/** Addresses 127.1.0.1 to 127.1.255.254. Tests that name an address use 127.0.*.*. */
const hostsPerNetwork = 254;
const networks = 256;
/** Linux has all addresses of 127.0.0.0/8; other systems only 127.0.0.1. */
const hasMany = process.platform === "linux";

let taken = 0;

/** Returns a new loopback address on each call, so that a broker sees each caller as another machine. Undefined if the system has only one address. */
export function takeLoopbackAddress(): string | undefined {
  if (!hasMany) return undefined;
  const place = taken % (networks * hostsPerNetwork);
  taken += 1;
  return `127.1.${Math.floor(place / hostsPerNetwork)}.${(place % hostsPerNetwork) + 1}`;
}
