import type { Attempt } from "../../harness/receiver.ts";
import type { Database } from "../../harness/postgres.ts";

/** A change of a subscription's owner. `at` is Unix time in milliseconds, by this machine's clock. */
interface OwnerChange {
  readonly id: string;
  readonly at: number;
  /** The new owner; undefined if no node owns the subscription. */
  readonly address: string | undefined;
}

/** The time from one change of a subscription's owner to the next. */
interface Ownership {
  readonly address: string | undefined;
  readonly from: number;
  readonly to: number;
}

/** Tolerance for the rounding of both clocks, in milliseconds. */
const roundingMs = 2;

/** Triggers that record each change of an owner, and which connection wrote each cursor. */
const bookkeeping = `
create schema checks;
create table checks.nodes as select node_id, address, joined_at from public.nodes;
create table checks.owners (number bigserial, at double precision, id text, owner text);
create table checks.writes (id text, owner text, port int, before bigint, after bigint);
create function checks.keep_node() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' or new.node_id <> old.node_id then
    insert into checks.nodes values (new.node_id, new.address, new.joined_at);
  end if;
  return new;
end $$;
create function checks.keep_owner() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' or new.owner is distinct from old.owner then
    insert into checks.owners (at, id, owner)
      values (extract(epoch from clock_timestamp()) * 1000, new.id, new.owner);
  end if;
  if tg_op = 'UPDATE' then
    if new.cursor <> old.cursor then
      insert into checks.writes values (new.id, new.owner, inet_client_port(), old.cursor, new.cursor);
    end if;
  end if;
  return new;
end $$;
create trigger keep_node after insert or update on public.nodes for each row execute function checks.keep_node();
create trigger keep_owner after insert or update on public.subscriptions for each row execute function checks.keep_owner();
`;

/** Installs the triggers. Call this when the nodes have created their tables. */
export async function recordOwners(database: Database): Promise<void> {
  await database.query(bookkeeping);
}

/** When each node joined, by `performance.now()`. A node that joined twice without a start between lost its membership. */
export async function listJoins(database: Database): Promise<readonly string[]> {
  const rows = await database.query("select address, joined_at from checks.nodes order by joined_at");
  const clockOrigin = Date.now() - performance.now();
  return rows.map(({ address, joined_at: at }) => `${String(address)} at ${Math.round(Number(at) - clockOrigin)}`);
}

/**
 * Writes that moved a cursor back, or that did not come from the owner of the subscription. Only a replay or a reorganisation may move a cursor back.
 * `hadPort` says whether a node ever had the local port: the system may give a port to one node after another.
 */
export async function listWrongWrites(
  database: Database,
  hadPort: (address: string, port: number) => boolean,
): Promise<readonly string[]> {
  const rows = await database.query(
    "select id, port, address, before, after from checks.writes left join checks.nodes on owner = node_id",
  );
  return rows
    .filter(({ port, address, before, after }) => {
      return Number(after) < Number(before) || !hadPort(String(address), Number(port));
    })
    .map((row) => JSON.stringify(row));
}

/** Attempts of nodes that did not own the subscription at that time. */
export async function listForeignAttempts(
  database: Database,
  attempts: readonly Attempt[],
): Promise<readonly string[]> {
  const ownerships = await readOwnerships(database);
  const clockOrigin = Date.now() - performance.now();
  return attempts.flatMap(({ subscriptionId, sender: caller, receivedAt, event }) => {
    const at = clockOrigin + receivedAt;
    const owners = (ownerships.get(subscriptionId) ?? []).filter(
      ({ from, to }) => at >= from - roundingMs && at <= to + roundingMs,
    );
    if (owners.some(({ address }) => address === caller)) return [];
    const names = owners.map(({ address }) => address ?? "nobody").join(", ");
    return [`${subscriptionId} ${event.eventId} by ${caller ?? "unknown"} while ${names} had it`];
  });
}

async function readOwnerships(database: Database): Promise<ReadonlyMap<string, readonly Ownership[]>> {
  const rows = await database.query(
    "select id, at, address from checks.owners left join checks.nodes on owner = node_id order by number",
  );
  const changes = rows.map(
    (row): OwnerChange => ({
      id: String(row["id"]),
      at: Number(row["at"]),
      address: (row["address"] as string | null) ?? undefined, // The column is a text.
    }),
  );
  const ids = new Set(changes.map(({ id }) => id));
  return new Map([...ids].map((own) => [own, toOwnerships(changes.filter(({ id }) => id === own))]));
}

function toOwnerships(changes: readonly OwnerChange[]): readonly Ownership[] {
  return changes.map(({ address, at }, index) => ({
    address,
    from: at,
    to: changes[index + 1]?.at ?? Number.POSITIVE_INFINITY,
  }));
}
