/** Addresses 127.1.0.1 to 127.1.255.254: the first ones are for tests that name them. */
const hostsPerNetwork = 254;
const networks = 256;
/** Linux has all addresses of 127.0.0.0/8; other systems only the first. */
const hasMany = process.platform === "linux";

let taken = 0;

/** Another loopback address for each call, so that a broker takes each for another machine; undefined where the system has one only. */
export function takeLoopbackAddress(): string | undefined {
  if (!hasMany) return undefined;
  const place = taken % (networks * hostsPerNetwork);
  taken += 1;
  return `127.1.${Math.floor(place / hostsPerNetwork)}.${(place % hostsPerNetwork) + 1}`;
}
