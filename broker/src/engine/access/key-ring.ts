import { BrokerError } from "@stele/wire";
import { bindRules, type BoundRule } from "../../domain/access-rule.ts";
import type { CertificateHolder } from "../../domain/certificate-holder.ts";
import { DueBuckets } from "../../lib/due-buckets.ts";
import type { ForwardClock } from "../../lib/forward-clock.ts";
import type { Logger } from "../../lib/logger.ts";
import { pause } from "../../lib/pause.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import { SetMap } from "../../lib/set-map.ts";
import type { ApiKeys, NumberedApiKey } from "../../ports/api-keys.ts";
import type { Clock } from "../../ports/clock.ts";
import { anonymous, type Known, type Owner, type Principal, toOwnerId } from "./caller.ts";
import { type ClientCertificate, equalsInConstantTime, parseKeyCredential } from "./credential.ts";
import { RoleTable, type RoleTableOptions } from "./role-table.ts";
import { RuleSet } from "./rule-set.ts";

/** Pause, in milliseconds, between two reads of changed keys. All nodes know a created or revoked key after at most twice that. */
export const keysReadEveryMs = 400;

/** If no read succeeded for this time, in milliseconds, the ring refuses everybody: somebody may have revoked keys since. */
export const keysStaleMsMax = 30_000;

/** Number of keys in memory at which the ring looks for pruned ones. This search reads all keys, which takes 0.1 s with 10,000 of them. */
const keysSweptMin = 1_000;

/** Maximum number of roles that a warning names. */
const rolesNamedMax = 5;

export interface KeyRingParts extends RoleTableOptions {
  readonly apiKeys: Pick<ApiKeys, "start" | "stop" | "listApiKeys" | "readRoles">;
  /** SHA-256 of a text, in hexadecimal digits. */
  readonly sha256: (text: string) => string;
  /** The principals of clients' certificates, with the names in those certificates. */
  readonly certificates?: readonly CertificateHolder[] | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The clock that decides whether a key has expired. */
  readonly time: Pick<ForwardClock, "now">;
  /** Called several times a second, with the owners of keys that changed or expired. */
  readonly onChecked: (changed: ReadonlySet<Owner>) => void;
}

/** Key fields for the entry of a certificate. No credential has this digest. */
const unissued = { digest: "", createdAt: 0, expiresAt: undefined, revokedAt: undefined, revision: 0 };

interface Entry {
  readonly key: NumberedApiKey;
  /** The same object for all callers with this key. */
  readonly principal: Known;
}

/** The rules of one owner's keys. The ring keeps the object while the roles stay the same, because readers check their filters again for a new object. */
interface Union {
  /** Sorted. */
  readonly roles: readonly string[];
  readonly rules: RuleSet;
  /** When the first of the united keys expires, in milliseconds since the epoch; infinite if none is valid, zero if a key has changed since. */
  validUntil: number;
}

const unnamed = { kind: "rejected", reason: "no name of the certificate is configured" } as const;
const ambiguous = { kind: "rejected", reason: "several names of the certificate are configured" } as const;
const wrong = { kind: "rejected", reason: "the broker does not know this credential" } as const;
const noKey = {
  kind: "rejected",
  reason:
    'it is neither a whole key nor a token that the broker accepts; HTTP clients give it as "Authorization: Bearer KEY"',
} as const;

/** Keeps every key and role in memory. Nodes and the command line write the tables; the ring is less than a second behind, unless reads are slow or fail. */
export class KeyRing {
  readonly roles: RoleTable;
  readonly #parts: KeyRingParts;
  /** The principal of each connection's certificate, so that all calls of a connection have the same principal. */
  readonly #certified = new WeakMap<ClientCertificate, Principal>();
  readonly #entries = new Map<string, Entry>();
  readonly #byOwner = new SetMap<Owner, string>();
  readonly #unions = new Map<Owner, Union>();
  /** Caches one valid key for each owner: each delivery needs one, and an owner may have thousands of ended keys. */
  readonly #validIds = new Map<Owner, string>();
  readonly #expiring = new DueBuckets<NumberedApiKey>();
  /** Owners of keys that changed since the last call of `onChecked`. */
  #changed = new Set<Owner>();
  readonly #stopping = new AbortController();
  readonly #trouble: ReportedTrouble;
  #running: Promise<void> = Promise.resolve();
  /** The read in progress. Reads run one after another, so that an older result never replaces a newer one. */
  #reading: Promise<void> = Promise.resolve();
  /** Owners of a valid key with a missing or damaged role. */
  readonly #lacking = new Set<Owner>();
  #warning: string | undefined;
  #revision = 0;
  #sweepAt = keysSweptMin;
  #readAt = 0;

  constructor(parts: KeyRingParts) {
    this.#parts = parts;
    this.roles = new RoleTable(parts);
    for (const { name, ...holder } of parts.certificates ?? [])
      this.#put({ ...unissued, tenant: undefined, ...holder, id: certificateId(name) });
    this.#trouble = new ReportedTrouble(parts.logger, "keys not read", "keys read again");
  }

  /** @throws Error when the keys cannot be read. */
  async start(): Promise<void> {
    await this.#parts.apiKeys.start();
    await this.refresh();
    this.#sweepLater(); // the ring has just read all keys
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#parts.apiKeys.stop();
  }

  /** Reads the changes, after the read in progress. */
  refresh(): Promise<void> {
    const read = (): Promise<void> => this.#read();
    this.#reading = this.#reading.then(read, read);
    return this.#reading;
  }

  /** Ignores the certificate if there is a credential. */
  authenticate(credential: string | undefined, certificate?: ClientCertificate): Principal {
    if (credential === undefined) return certificate === undefined ? anonymous : this.#authenticateHolder(certificate);
    const parsed = parseKeyCredential(credential);
    if (parsed === undefined) return noKey;
    const digest = this.#parts.sha256(parsed.secret);
    const entry = this.#entries.get(parsed.id);
    return entry !== undefined && equalsInConstantTime(digest, entry.key.digest) ? entry.principal : wrong;
  }

  #authenticateHolder(certificate: ClientCertificate): Principal {
    const principal = this.#certified.get(certificate) ?? this.#findHolder(certificate);
    this.#certified.set(certificate, principal);
    return principal;
  }

  /** Rejects a certificate if none or several of its names are configured. */
  #findHolder({ names, validTo }: ClientCertificate): Principal {
    const found = [...new Set(names)].flatMap((name) => this.#entries.get(certificateId(name)) ?? []);
    const [entry] = found;
    if (entry === undefined) return unnamed;
    return found.length > 1 ? ambiguous : { ...entry.principal, expiresAt: validTo };
  }

  /** See `Policy.findFault`. */
  findFault(principal: Principal): string | undefined {
    if (principal.kind === "anonymous") return "none was given";
    if (principal.kind === "rejected") return principal.reason;
    const fault = this.#findKnownFault(principal);
    const trouble = this.findTrouble();
    if (fault !== undefined || trouble === undefined) return fault;
    throw new BrokerError("storeUnreachable", { details: trouble });
  }

  /** See `Policy.findTrouble`. */
  findTrouble(): string | undefined {
    const isStale = this.#parts.clock.monotonic() - this.#readAt > keysStaleMsMax;
    return isStale ? "the keys cannot be read" : undefined;
  }

  /** A warning that names the missing and damaged roles of valid keys; undefined if there are none. */
  findWarning(): string | undefined {
    return this.#warning;
  }

  /** Judges by the last read: a key expires even while the table cannot be read. */
  #findKnownFault(principal: Known): string | undefined {
    if (principal.keyId === undefined)
      return this.isAlive(principal.id) ? undefined : "no key of its owner is valid any more";
    const key = this.#entries.get(principal.keyId)?.key;
    if (key === undefined) return "the key has ended"; // Its row was pruned, and a connection still has its principal.
    if (key.revokedAt !== undefined) return "the key is revoked";
    if (this.#isExpired(key)) return "the key is expired";
    if (this.#lacking.has(principal.id)) return "a key of its owner has a role that does not exist";
    return this.#isExpired(principal) ? "the certificate is expired" : undefined;
  }

  /** Whether an owner has a valid key, and no valid key with a missing or damaged role. */
  isAlive(owner: Owner): boolean {
    if (this.#lacking.has(owner)) return false;
    if (this.#isValidKeyOf(owner, this.#validIds.get(owner))) return true;
    const found = [...this.#byOwner.get(owner)].findLast((id) => this.#isValidKeyOf(owner, id));
    if (found === undefined) this.#validIds.delete(owner);
    else this.#validIds.set(owner, found);
    return found !== undefined;
  }

  #isValidKeyOf(owner: Owner, id: string | undefined): boolean {
    const entry = id === undefined ? undefined : this.#entries.get(id);
    return entry !== undefined && entry.principal.id === owner && this.#isValid(entry.key);
  }

  /** The rules of an owner's valid keys together, or of all its keys if none is valid; undefined if it has no keys. */
  rulesOf(owner: Owner): RuleSet | undefined {
    const known = this.#unions.get(owner);
    if (known !== undefined && this.#parts.time.now() < known.validUntil) return known.rules;
    const all = this.#entriesOf(owner);
    const valid = all.filter(({ key }) => this.#isValid(key));
    const validUntil = Math.min(...valid.map(({ key }) => key.expiresAt ?? Infinity));
    const union = this.#unite(valid.length === 0 ? all : valid, known);
    if (union !== undefined) this.#unions.set(owner, { ...union, validUntil });
    return union?.rules;
  }

  /** The rules of some keys of one owner. Thousands of keys may have the same roles, and each decision compares every rule. */
  #unite(entries: readonly Entry[], known: Union | undefined): Pick<Union, "roles" | "rules"> | undefined {
    const [first] = entries;
    if (first === undefined) return undefined;
    const roles = [...new Set(entries.flatMap(({ key }) => key.roles))].toSorted();
    if (known?.roles.length === roles.length && roles.every((role, index) => role === known.roles[index])) return known;
    // Most owners have one key, and share its rules. They do not share those of a revoked key: its row may be damaged, and name other roles.
    const isOwn = known === undefined && entries.length === 1 && this.#isValid(first.key);
    return { roles, rules: isOwn ? first.principal.rules : this.#createRules({ ...first.key, roles }) };
  }

  #entriesOf(owner: Owner): readonly Entry[] {
    const ids = [...this.#byOwner.get(owner)];
    return ids.map((id) => this.#entries.get(id)).filter((entry) => entry !== undefined);
  }

  #isValid(key: NumberedApiKey): boolean {
    return key.revokedAt === undefined && !this.#isExpired(key);
  }

  #isExpired({ expiresAt }: Pick<NumberedApiKey, "expiresAt">): boolean {
    return expiresAt !== undefined && expiresAt <= this.#parts.time.now();
  }

  async #run(): Promise<void> {
    await Promise.all([this.#readOften(), this.#checkOften()]);
  }

  async #readOften(): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#stopping;
    for (;;) {
      await pause(clock, keysReadEveryMs, signal);
      if (signal.aborted) return;
      try {
        await this.refresh();
        this.#trouble.done();
      } catch (error) {
        this.#trouble.failed(error);
      }
    }
  }

  /** Does not wait for reads: a read may hang for seconds, and credentials expire meanwhile. */
  async #checkOften(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await pause(this.#parts.clock, keysReadEveryMs, signal);
      if (signal.aborted) return;
      this.#check();
    }
  }

  #check(): void {
    const now = this.#parts.time.now();
    for (const key of this.#expiring.takeDue(now)) {
      this.#changed.add(ownerOfKey(key));
      if (!this.#isExpired(key)) this.#expiring.add(key, key.expiresAt ?? 0); // a bucket also returns keys that expire a little later
    }
    const changed = this.#changed;
    this.#changed = new Set();
    this.#parts.onChecked(changed);
  }

  async #read(): Promise<void> {
    const { apiKeys, clock } = this.#parts;
    const startedAt = clock.monotonic();
    const isSweep = this.#entries.size >= this.#sweepAt;
    const keys = await apiKeys.listApiKeys(isSweep ? 0 : this.#revision);
    const takeOver = await this.roles.read(); // Read roles after keys: a role is stored before the keys that have it.
    const changed = takeOver();
    if (changed.size > 0) this.#renew(changed);
    if (isSweep) this.#forgetPruned(new Set(keys.map(({ id }) => id)));
    for (const key of keys.filter(({ revision }) => revision > this.#revision)) {
      this.#put(key);
      this.#revision = key.revision;
    }
    if (changed.size + keys.length > 0 || this.#lacking.size > 0) this.#lookForMissingRoles();
    this.#readAt = startedAt;
    // Report changes in the turn that applies them: a session that continued without rights would skip events.
    this.#check();
  }

  /** Drops ended keys that the table no longer has. Otherwise a program that creates short-lived keys for years would fill the memory. */
  #forgetPruned(ids: ReadonlySet<string>): void {
    for (const [id, { key, principal }] of this.#entries) {
      if (ids.has(id) || this.#isValid(key)) continue;
      this.#entries.delete(id);
      this.#expiring.delete(key, key.expiresAt ?? 0);
      this.#noteChanged(principal.id);
      this.#byOwner.delete(principal.id, id);
      if (this.#byOwner.get(principal.id).size > 0) continue;
      this.#unions.delete(principal.id);
      this.#validIds.delete(principal.id);
    }
    this.#sweepLater();
  }

  #sweepLater(): void {
    this.#sweepAt = Math.max(keysSweptMin, 2 * this.#entries.size);
  }

  /** Renews the rules of the keys with these roles. */
  #renew(changed: ReadonlySet<string>): void {
    for (const { key, principal } of this.#entries.values()) {
      if (!key.roles.some((role) => changed.has(role))) continue;
      principal.rules.renew();
      this.#changed.add(principal.id);
    }
    for (const { roles, rules } of this.#unions.values()) if (roles.some((role) => changed.has(role))) rules.renew();
  }

  #noteChanged(owner: Owner): void {
    this.#changed.add(owner);
    const union = this.#unions.get(owner);
    if (union !== undefined) union.validUntil = 0;
  }

  /** A missing or damaged role may have denied something, so an owner of a key with it is refused until the role is stored again. */
  #lookForMissingRoles(): void {
    const missing = new Set<string>();
    this.#lacking.clear();
    for (const { key, principal } of this.#entries.values()) {
      if (!this.#isValid(key)) continue;
      for (const role of key.roles.filter((name) => !this.roles.has(name))) {
        missing.add(role);
        this.#lacking.add(principal.id);
      }
    }
    const warning = missing.size === 0 ? undefined : describeMissing([...missing], this.roles.damaged());
    if (warning !== undefined && warning !== this.#warning) this.#parts.logger.warn("roles not found", { warning });
    this.#warning = warning;
  }

  #put(key: NumberedApiKey): void {
    const { tenant } = key;
    const id = ownerOfKey(key);
    const known = this.#entries.get(key.id);
    if (known?.key.expiresAt !== undefined) this.#expiring.delete(known.key, known.key.expiresAt);
    if (key.expiresAt !== undefined && key.revokedAt === undefined) this.#expiring.add(key, key.expiresAt);
    const former = known?.principal;
    // The revocation of a damaged row keeps the owner that the row names, which may differ from the former owner.
    for (const owner of new Set([id, former?.id ?? id])) this.#noteChanged(owner);
    const rules = former?.rules ?? this.#createRules(key);
    const principal: Known = { kind: "known", id, tenant, rules, expiresAt: key.expiresAt, keyId: key.id };
    this.#entries.set(key.id, { key, principal });
    this.#byOwner.add(id, key.id);
  }

  /** A method of its own, so that the closure keeps only the key in memory. */
  #createRules(key: NumberedApiKey): RuleSet {
    return new RuleSet(() => this.#rulesOfKey(key));
  }

  #rulesOfKey({ roles, principal, tenant }: NumberedApiKey): readonly BoundRule[] {
    return roles.flatMap((role) => bindRules(this.roles.rulesOf(role), { principal, tenant }));
  }
}

/** The id of a certificate's entry. No key has such an id. */
function certificateId(name: string): string {
  return `certificate ${name}`;
}

function describeMissing(missing: readonly string[], damaged: readonly string[]): string {
  const named = missing.slice(0, rolesNamedMax).map((role) => (damaged.includes(role) ? `${role} (damaged)` : role));
  const more = missing.length > rolesNamedMax ? ` and ${missing.length - rolesNamedMax} more` : "";
  return `whoever has a key with one of these roles is refused, set them or revoke the keys: ${named.join(", ")}${more}`;
}

function ownerOfKey({ principal, tenant }: NumberedApiKey): Owner {
  return toOwnerId(principal, tenant);
}
