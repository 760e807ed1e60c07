import type { GroupId } from "../../domain/group-id.ts";
import {
  type Fenced,
  type FencedKey,
  type HeldKey,
  type KeyClaim,
  type KeyCounts,
  type PublishKey,
  type PublishKeyRow,
  type PublishKeys,
  sharedAccountOf,
  toFencedKey,
} from "../../ports/publish-keys.ts";
import type { SessionId } from "../../ports/session-store.ts";

/** The rows of one scope, by identifier. */
interface KeptScope extends Pick<PublishKey, "groupId" | "scope"> {
  readonly ids: Set<string>;
}

/**
 * The publish keys of the memory store, in the order in which they were recorded. There may be a million, so only the last page of an expiry visits all
 * of them.
 */
export abstract class MemoryPublishKeys implements PublishKeys {
  readonly #rows = new Map<string, PublishKeyRow>();
  readonly #scopes = new Map<string, KeptScope>();

  /** The epoch of a session; undefined if the session does not exist. */
  protected abstract epochOf(id: SessionId): number | undefined;

  async recordPublishKeys(claims: readonly KeyClaim[]): Promise<readonly (PublishKeyRow | FencedKey)[]> {
    const taken: (PublishKeyRow | FencedKey)[] = [];
    for (const { fence, mayReplace = false, ...row } of claims) {
      const known = this.#rows.get(idOf(row));
      if (!this.#isOwn({ fence })) taken.push(toFencedKey(row));
      else if (known === undefined || (mayReplace && known.digest !== row.digest)) this.#put(row);
      else if (known.token !== row.token) taken.push(known);
    }
    return taken;
  }

  async findPublishKey(key: PublishKey): Promise<PublishKeyRow | undefined> {
    return this.#rows.get(idOf(key));
  }

  async movePublishKey(row: PublishKeyRow, sender: string): Promise<boolean> {
    const known = this.#rows.get(idOf(row));
    if (known?.token !== row.token || known.sender !== row.sender) return false;
    this.#rows.set(idOf(row), { ...known, sender });
    return true;
  }

  async releasePublishKeys(rows: readonly HeldKey[]): Promise<readonly FencedKey[]> {
    const fenced = rows.filter((row) => !this.#isOwn(row));
    for (const row of rows) {
      if (fenced.includes(row)) continue;
      const known = this.#rows.get(idOf(row));
      if (known?.token === row.token && known.sender === row.sender) this.#remove(known);
    }
    return fenced.map(toFencedKey);
  }

  async expirePublishKeys(
    groupId: GroupId,
    { before, atMost }: { readonly before: number; readonly atMost: number },
  ): Promise<number> {
    let removed = 0;
    for (const row of this.#rows.values()) {
      if (removed === atMost) break;
      if (row.groupId !== groupId || row.recordedAt >= before) continue;
      this.#remove(row);
      removed += 1;
    }
    return removed;
  }

  async countPublishKeys(groupId: GroupId, countMin: number): Promise<KeyCounts> {
    const byAccount = new Map<string, number>();
    const shared = new Map<string, number>();
    let total = 0;
    for (const { groupId: group, scope, ids } of this.#scopes.values()) {
      if (group !== groupId) continue;
      total += ids.size;
      if (ids.size >= countMin) byAccount.set(scope, ids.size);
      const account = sharedAccountOf(scope);
      if (account !== undefined) shared.set(account, (shared.get(account) ?? 0) + ids.size);
    }
    for (const [account, count] of shared) if (count >= countMin) byAccount.set(account, count);
    return { total, byAccount };
  }

  async dropPublishKeys(groupId: GroupId, scope: string): Promise<void> {
    const id = scopeIdOf({ groupId, scope });
    for (const row of this.#scopes.get(id)?.ids ?? []) this.#rows.delete(row);
    this.#scopes.delete(id);
  }

  #put(row: PublishKeyRow): void {
    const id = idOf(row);
    this.#rows.delete(id); // The rows stay in the order of recording.
    this.#rows.set(id, row);
    const { groupId, scope } = row;
    const kept = this.#scopes.get(scopeIdOf(row)) ?? { groupId, scope, ids: new Set() };
    kept.ids.add(id);
    this.#scopes.set(scopeIdOf(row), kept);
  }

  #remove(row: PublishKeyRow): void {
    const id = idOf(row);
    this.#rows.delete(id);
    const ids = this.#scopes.get(scopeIdOf(row))?.ids;
    ids?.delete(id);
    if (ids?.size === 0) this.#scopes.delete(scopeIdOf(row));
  }

  #isOwn({ fence }: Fenced): boolean {
    return fence === undefined || this.epochOf(fence.id) === fence.epoch;
  }
}

function idOf({ groupId, scope, key }: PublishKey): string {
  return JSON.stringify([groupId, scope, key]);
}

function scopeIdOf({ groupId, scope }: Pick<PublishKey, "groupId" | "scope">): string {
  return JSON.stringify([groupId, scope]);
}
