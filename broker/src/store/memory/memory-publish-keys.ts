import type { GroupId } from "../../domain/group-id.ts";
import type { HeldKey, KeyCounts, PublishKey, PublishKeyRow, PublishKeys } from "../../ports/publish-keys.ts";

/** The publish keys of the store in memory, in the order in which they were recorded. */
export class MemoryPublishKeys implements PublishKeys {
  readonly #rows = new Map<string, PublishKeyRow>();

  async recordPublishKeys(rows: readonly PublishKeyRow[]): Promise<readonly PublishKeyRow[]> {
    const taken: PublishKeyRow[] = [];
    for (const row of rows) {
      const known = this.#rows.get(idOf(row));
      if (known === undefined) this.#rows.set(idOf(row), row);
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

  async releasePublishKeys(rows: readonly HeldKey[]): Promise<void> {
    for (const row of rows) {
      const known = this.#rows.get(idOf(row));
      if (known?.token === row.token && known.sender === row.sender) this.#rows.delete(idOf(row));
    }
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
}

function idOf({ groupId, scope, key }: PublishKey): string {
  return JSON.stringify([groupId, scope, key]);
}
