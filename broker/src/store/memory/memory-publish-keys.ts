import type { GroupId } from "../../domain/group-id.ts";
import type { HeldKey, PublishKey, PublishKeyRow, PublishKeys } from "../../ports/publish-keys.ts";

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

  async countPublishKeys(groupId: GroupId): Promise<number> {
    return [...this.#rows.values()].filter((row) => row.groupId === groupId).length;
  }
}

function idOf({ groupId, scope, key }: PublishKey): string {
  return JSON.stringify([groupId, scope, key]);
}
