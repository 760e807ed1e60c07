import type { ApiKey, ApiKeys, NumberedApiKey } from "../../ports/api-keys.ts";

/** A table of keys in memory, which the nodes of one process may share. */
export class MemoryApiKeys implements ApiKeys {
  readonly #keys = new Map<string, NumberedApiKey>();
  #revision = 0;

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  async insertApiKey(key: ApiKey, atMost: number): Promise<boolean> {
    if (this.#keys.size >= atMost || this.#keys.has(key.id)) return false;
    this.#put(key);
    return true;
  }

  async revokeApiKey(id: string, revokedAt: number): Promise<boolean> {
    const known = this.#keys.get(id);
    if (known === undefined) return false;
    if (known.revokedAt === undefined) this.#put({ ...known, revokedAt });
    return true;
  }

  async pruneApiKeys(before: number): Promise<number> {
    const ended = [...this.#keys.values()].filter((key) => isBefore(key.expiresAt) || isBefore(key.revokedAt));
    for (const { id } of ended) this.#keys.delete(id);
    this.#revision += 1;
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

  #put(key: ApiKey): void {
    this.#revision += 1;
    this.#keys.set(key.id, { ...key, revision: this.#revision });
  }
}
