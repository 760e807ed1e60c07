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
  toFencedKey,
} from "../../ports/publish-keys.ts";
import type { SessionId } from "../../ports/session-store.ts";

/** The publish keys of the store in memory, in the order in which they were recorded. */
export abstract class MemoryPublishKeys implements PublishKeys {
  readonly #rows = new Map<string, PublishKeyRow>();

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
      if (known?.token === row.token && known.sender === row.sender) this.#rows.delete(idOf(row));
    }
    return fenced.map(toFencedKey);
  }

  async expirePublishKeys(
    groupId: GroupId,
    { before, atMost }: { readonly before: number; readonly atMost: number },
  ): Promise<number> {
    const old = [...this.#rows].filter(([, row]) => row.groupId === groupId && row.recordedAt < before);
    const page = old.toSorted(([, left], [, right]) => left.recordedAt - right.recordedAt).slice(0, atMost);
    for (const [id] of page) this.#rows.delete(id);
    return page.length;
  }

  async countPublishKeys(groupId: GroupId, scopeMin: number): Promise<KeyCounts> {
    const rows = [...this.#rows.values()].filter((row) => row.groupId === groupId);
    const byScope = new Map<string, number>();
    for (const { scope } of rows) byScope.set(scope, (byScope.get(scope) ?? 0) + 1);
    return { total: rows.length, byScope: new Map([...byScope].filter(([, count]) => count >= scopeMin)) };
  }

  async dropPublishKeys(groupId: GroupId, scope: string): Promise<void> {
    for (const [id, row] of this.#rows) if (row.groupId === groupId && row.scope === scope) this.#rows.delete(id);
  }

  #put(row: PublishKeyRow): void {
    this.#rows.delete(idOf(row)); // The rows stay in the order of recording.
    this.#rows.set(idOf(row), row);
  }

  #isOwn({ fence }: Fenced): boolean {
    return fence === undefined || this.epochOf(fence.id) === fence.epoch;
  }
}

function idOf({ groupId, scope, key }: PublishKey): string {
  return JSON.stringify([groupId, scope, key]);
}
