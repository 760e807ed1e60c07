import { isIP } from "node:net";

/** Maximum length of an allowed Host header: a DNS name and a port. */
const hostCharactersMax = 260;

/** `name`, `1.2.3.4` or `[::1]`, with or without a port. */
const hostPattern = /^(?:\[([0-9a-f:.]+)\]|([^\s:@/?#[\]]+))(?::\d{0,5})?$/;

/**
 * Decides which names in a Host header belong to this broker. A web page may point its own name to this machine (DNS rebinding). Browsers then treat
 * its requests as same-origin, so only the name in the Host header reveals them.
 */
export class HostRule {
  readonly #names: ReadonlySet<string>;
  /** Allowed endings of names, each with its leading dot. */
  readonly #suffixes: readonly string[];
  readonly #allowsAll: boolean;

  /** `allowed` holds names, `*.name` for every name below one, or `*` for any. */
  constructor(allowed: readonly string[]) {
    const entries = allowed.map((entry) => entry.toLowerCase());
    this.#allowsAll = entries.includes("*");
    this.#names = new Set(["localhost", ...entries]);
    this.#suffixes = [
      ".localhost",
      ...entries.filter((entry) => entry.startsWith("*.")).map((entry) => entry.slice(1)),
    ];
  }

  allows(host: string): boolean {
    if (host.length > hostCharactersMax) return false;
    const [, ipv6, name] = hostPattern.exec(host.toLowerCase()) ?? [];
    if (ipv6 !== undefined) return this.#allowsAll || isOwnIpv6(ipv6);
    return name !== undefined && this.#allowsName(name.replace(/\.$/, ""));
  }

  #allowsName(name: string): boolean {
    if (this.#allowsAll || this.#names.has(name) || isOwnIpv4(name)) return true;
    return this.#suffixes.some((suffix) => name.endsWith(suffix) && name.length > suffix.length);
  }
}

/**
 * Whether a name is an allowed IPv4 address. An address needs no DNS, so no page can rebind it. The unspecified address is refused: systems connect it to
 * loopback, and browsers send no `Sec-Fetch-Site` there.
 */
function isOwnIpv4(name: string): boolean {
  return isIP(name) === 4 && name !== "0.0.0.0";
}

/** Whether a name is an allowed IPv6 address. The unspecified `::` is not allowed, nor is a form such as `::ffff:7f00:1`, which stands for an IPv4 address. */
function isOwnIpv6(name: string): boolean {
  return isIP(name) === 6 && (name === "::1" || !name.startsWith("::"));
}
