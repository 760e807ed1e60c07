import type { Kysely } from "kysely";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address, Hash } from "../../domain/topic.ts";
import type { Journal, JournalEntry, SignedVariant } from "../../ports/journal.ts";
import type { JournalTable, Schema, SqlDatabase } from "./schema.ts";
import { prepare } from "./prepared.ts";

const hashBytes = 32;
const lengthBytes = 4;

type Owner = Pick<JournalTable, "group_id" | "sender">;

/** The journal's part of the store. */
export class SqlJournal implements Journal {
  readonly #database: SqlDatabase;
  readonly #queries: ReturnType<typeof createQueries>;

  constructor(database: SqlDatabase) {
    this.#database = database;
    this.#queries = createQueries(database.urgent);
  }

  async recordTransactions(entries: readonly JournalEntry[]): Promise<void> {
    if (entries.length === 0) return;
    await this.#database.urgent.transaction().execute(async (transaction) => {
      for (const entry of entries) await transaction.executeQuery(this.#queries.record.bind(toRow(entry)));
    });
  }

  async listTransactions(groupId: GroupId, sender: Address): Promise<readonly JournalEntry[]> {
    const { rows } = await this.#database.relaxed.executeQuery(this.#queries.list.bind({ group_id: groupId, sender }));
    return rows.map(({ nonce, recorded_at, variants }) => ({
      groupId,
      sender,
      nonce,
      variants: splitVariants(variants),
      recordedAt: recorded_at,
    }));
  }

  async removeTransactions(groupId: GroupId, sender: Address, nonces: readonly number[]): Promise<void> {
    if (nonces.length === 0) return;
    await this.#database.urgent.transaction().execute(async (transaction) => {
      for (const nonce of nonces) {
        await transaction.executeQuery(this.#queries.remove.bind({ group_id: groupId, sender, nonce }));
      }
    });
  }
}

function createQueries(database: Kysely<Schema>) {
  return {
    record: prepare(({ group_id, sender, nonce, recorded_at, variants }: JournalTable) =>
      database
        .insertInto("journal")
        .values({ group_id, sender, nonce, recorded_at, variants })
        .onConflict((conflict) =>
          conflict.columns(["group_id", "sender", "nonce"]).doUpdateSet((row) => ({
            recorded_at: row.ref("excluded.recorded_at"),
            variants: row.ref("excluded.variants"),
          })),
        ),
    ),
    list: prepare(({ group_id, sender }: Owner) =>
      database
        .selectFrom("journal")
        .select(["nonce", "recorded_at", "variants"])
        .where("group_id", "=", group_id)
        .where("sender", "=", sender)
        .orderBy("nonce"),
    ),
    remove: prepare(({ group_id, sender, nonce }: Owner & Pick<JournalTable, "nonce">) =>
      database
        .deleteFrom("journal")
        .where("group_id", "=", group_id)
        .where("sender", "=", sender)
        .where("nonce", "=", nonce),
    ),
  };
}

function toRow({ groupId, sender, nonce, recordedAt, variants }: JournalEntry): JournalTable {
  return { group_id: groupId, sender, nonce, recorded_at: recordedAt, variants: joinVariants(variants) };
}

/** The signed versions one after the other, each as hash, length and bytes. */
function joinVariants(variants: readonly SignedVariant[]): Uint8Array {
  return Buffer.concat(
    variants.flatMap(({ hash, raw }) => {
      const header = Buffer.alloc(hashBytes + lengthBytes);
      header.write(hash.slice(2), "hex");
      header.writeUInt32BE(raw.length, hashBytes);
      return [header, raw];
    }),
  );
}

/** Leaves out versions that damage cut off; the reader checks each version against its hash. SQLite returns a text if the stored type is damaged. */
function splitVariants(joined: unknown): readonly SignedVariant[] {
  if (!(joined instanceof Uint8Array)) return [];
  const bytes = Buffer.from(joined.buffer, joined.byteOffset, joined.byteLength);
  const variants: SignedVariant[] = [];
  for (let at = 0; at + hashBytes + lengthBytes <= bytes.length; ) {
    const start = at + hashBytes + lengthBytes;
    const end = start + bytes.readUInt32BE(at + hashBytes);
    const hash: Hash = `0x${bytes.toString("hex", at, at + hashBytes)}`;
    variants.push({ hash, raw: new Uint8Array(bytes.subarray(start, end)) });
    at = end;
  }
  return variants;
}
