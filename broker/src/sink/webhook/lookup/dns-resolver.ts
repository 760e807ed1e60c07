import { Resolver as DnsClient } from "node:dns/promises";
import { Semaphore } from "../../../lib/semaphore.ts";
import { SharedCalls } from "../../../lib/shared-calls.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Metrics } from "../../../ports/metrics.ts";
import { AttemptError } from "../attempt-error.ts";
import { type LookupResult, queryAddresses } from "./address-query.ts";
import { type Hosts, hostsPath, parseHosts } from "./hosts-file.ts";
import { NameCache } from "./name-cache.ts";
import { candidatesFor, parseSearchRules, type SearchRules } from "./search-list.ts";
import { WatchedFile } from "./watched-file.ts";

export interface DnsResolverOptions {
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "lookupEnded">;
  /** Name servers, with or without a port; if empty, those of the machine. */
  readonly servers: readonly string[];
  /** The machine's files, if they are not in the usual place. */
  readonly hostsFile?: string;
  readonly resolvConfFile?: string;
}

/** Timeout of one look-up of a host name, including the wait for its turn and the search list. */
const lookupMsMax = 3000;
/** Time before a DNS query is sent again, or to another name server. */
const queryTimeoutMs = 1000;
/** Number of tries of a DNS query per name server. */
const queryTriesMax = 2;
/** Maximum number of concurrent look-ups of host names. */
const lookupsMax = 256;
/** Maximum number of concurrent look-ups of names whose last look-up failed. They have slots of their own, so other names do not wait for them. */
const retriedLookupsMax = 32;

const loopback = ["127.0.0.1", "::1"];

/**
 * Resolves names like the machine does (hosts file, search list, name servers), but with a time limit and without the threads of `getaddrinfo`.
 * Names without an answer do not delay other names.
 */
export class DnsResolver {
  readonly #options: DnsResolverOptions;
  readonly #hosts: WatchedFile<Hosts>;
  readonly #search: WatchedFile<SearchRules>;
  readonly #cache: NameCache;
  readonly #lookups = new SharedCalls<string, LookupResult>();
  readonly #turns = new Semaphore(lookupsMax);
  readonly #retryTurns = new Semaphore(retriedLookupsMax);
  readonly #closing = new AbortController();
  #client: DnsClient;
  /**
   * The search rules at the first use of the client. If they change, a new client is needed: a client reads the machine's name servers only when it
   * is created.
   */
  #clientOf: SearchRules | undefined;

  constructor(options: DnsResolverOptions) {
    const { clock, hostsFile = hostsPath, resolvConfFile = "/etc/resolv.conf" } = options;
    this.#options = options;
    this.#hosts = new WatchedFile(hostsFile, { parse: parseHosts, clock });
    this.#search = new WatchedFile(resolvConfFile, { parse: parseSearchRules, clock });
    this.#cache = new NameCache(clock);
    this.#client = this.#createClient();
  }

  /** The addresses of a host name, at least one. @throws AttemptError */
  async resolve(hostname: string): Promise<readonly string[]> {
    const name = hostname.toLowerCase();
    const bare = name.replace(/\.$/, "");
    if (bare === "localhost" || bare.endsWith(".localhost")) return loopback; // RFC 6761, section 6.3.
    const known = (await this.#hosts.current()).get(bare);
    if (known !== undefined) return known;
    const result = this.#cache.find(name) ?? (await this.#lookups.run(name, () => this.#lookUp(name)));
    if (result.kind === "found") return result.addresses;
    throw new AttemptError(result.kind === "absent" ? "the host name was not found" : describeFailure(result.reason));
  }

  /** Ends the current look-ups; they fail. */
  close(): void {
    this.#closing.abort();
    this.#client.cancel();
  }

  async #lookUp(name: string): Promise<LookupResult> {
    const deadline = new AbortController();
    const abort = (): void => deadline.abort();
    const cancelTimer = this.#options.clock.after(lookupMsMax, abort);
    this.#closing.signal.addEventListener("abort", abort, { once: true, signal: deadline.signal });
    const turns = this.#cache.hasFailed(name) ? this.#retryTurns : this.#turns;
    const result = await turns.run(() => this.#askFor(name, deadline.signal), deadline.signal);
    cancelTimer();
    deadline.abort();
    const known = result ?? { kind: "failed", reason: "ETIMEOUT" };
    this.#options.metrics.lookupEnded(outcomeOf(known));
    return this.#cache.record(name, known);
  }

  async #askFor(name: string, signal: AbortSignal): Promise<LookupResult> {
    const rules = await this.#search.current();
    const client = this.#clientFor(rules);
    let failure: LookupResult | undefined;
    for (const candidate of candidatesFor(name, rules)) {
      const result = await queryAddresses(candidate, { client, clock: this.#options.clock, signal });
      if (result.kind === "found") return result;
      if (result.kind === "failed") failure ??= result;
      if (signal.aborted) break;
    }
    return failure ?? { kind: "absent" };
  }

  #clientFor(rules: SearchRules): DnsClient {
    if (this.#clientOf !== undefined && this.#clientOf !== rules) this.#client = this.#createClient();
    this.#clientOf = rules;
    return this.#client;
  }

  #createClient(): DnsClient {
    const client = new DnsClient({ timeout: queryTimeoutMs, tries: queryTriesMax });
    if (this.#options.servers.length > 0) client.setServers(this.#options.servers);
    return client;
  }
}

function describeFailure(reason: string): string {
  return reason === "ETIMEOUT"
    ? `the host name was not looked up within ${lookupMsMax} ms`
    : `the host name could not be looked up (${reason})`;
}

function outcomeOf(result: LookupResult): "found" | "absent" | "timed-out" | "failed" {
  if (result.kind !== "failed") return result.kind;
  return result.reason === "ETIMEOUT" ? "timed-out" : "failed";
}
