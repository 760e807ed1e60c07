import type { AccessRule } from "../../domain/access-rule.ts";
import type { ApiKey, ApiKeys, NumberedApiKey, StoredRoles } from "../../ports/api-keys.ts";

interface NumberedRole {
  readonly name: string;
  readonly rules: readonly AccessRule[];
  readonly revision: number;
}

/** Tables of keys and roles in memory, which the nodes of one process may share. */
export class MemoryApiKeys implements ApiKeys {
  readonly #keys = new Map<string, NumberedApiKey>();
  readonly #roles = new Map<string, NumberedRole>();
  #revision = 0;
  #rolesRevision = 0;

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  async insertApiKey(key: ApiKey, atMost: number): Promise<boolean> {
    // Counts the valid keys only if there are at least `atMost` keys: otherwise each insertion would read all keys.
    const isFull = this.#keys.size >= atMost && this.#countValid(key.createdAt) >= atMost;
    if (isFull || this.#keys.has(key.id)) return false;
    this.#put(key);
    return true;
  }

  async revokeApiKey(id: string, revokedAt: number): Promise<boolean> {
    const known = this.#keys.get(id);
    if (known === undefined) return false;
    if (known.revokedAt === undefined) this.#put({ ...known, revokedAt });
    return true;
  }

  async pruneApiKeys(before: number, { keepsOwners }: { readonly keepsOwners: boolean }): Promise<number> {
    const all = [...this.#keys.values()];
    const hasLater = ({ principal, tenant, revision }: NumberedApiKey): boolean =>
      all.some((key) => key.principal === principal && key.tenant === tenant && key.revision > revision);
    const ended = all
      .filter((key) => isBefore(key.expiresAt) || isBefore(key.revokedAt))
      .filter((key) => !keepsOwners || hasLater(key));
    for (const { id } of ended) this.#keys.delete(id);
    return ended.length;

    function isBefore(time: number | undefined): boolean {
      return time !== undefined && time < before;
    }
  }

  async listApiKeys(afterRevision: number): Promise<readonly NumberedApiKey[]> {
    if (afterRevision > this.#revision) throw new Error("the keys were replaced by older ones");
    const changed = [...this.#keys.values()].filter(({ revision }) => revision > afterRevision);
    return changed.toSorted((left, right) => left.revision - right.revision);
  }

  async putRole({ name, rules }: Omit<NumberedRole, "revision">, atMost: number): Promise<boolean> {
    const others = [...this.#roles.keys()].filter((other) => other !== name);
    if (others.length >= atMost) return false;
    this.#rolesRevision += 1;
    this.#roles.set(name, { name, rules, revision: this.#rolesRevision });
    return true;
  }

  async deleteRole(name: string): Promise<boolean> {
    if (!this.#roles.delete(name)) return false;
    this.#rolesRevision += 1;
    return true;
  }

  async readRoles(afterRevision: number): Promise<StoredRoles | undefined> {
    const revision = this.#rolesRevision;
    if (afterRevision > revision) throw new Error("the roles were replaced by older ones");
    if (afterRevision === revision) return undefined;
    const all = [...this.#roles.values()].toSorted((left, right) => (left.name < right.name ? -1 : 1));
    return { revision, roles: all.map(({ name, rules }) => ({ name, rules })) };
  }

  #countValid(now: number): number {
    let count = 0;
    for (const { revokedAt, expiresAt = Number.POSITIVE_INFINITY } of this.#keys.values()) {
      if (revokedAt === undefined && expiresAt > now) count += 1;
    }
    return count;
  }

  #put(key: ApiKey): void {
    this.#revision += 1;
    this.#keys.set(key.id, { ...key, revision: this.#revision });
  }
}
