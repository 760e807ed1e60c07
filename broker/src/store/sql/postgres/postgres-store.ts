import { setTimeout as pause } from "node:timers/promises";
import { BrokerError, type ErrorName } from "@stele/wire";
import { type Logger, silentLogger } from "../../../lib/logger.ts";
import { SqlStore } from "../sql-store.ts";
import { StoreError, type StoreFault } from "../store-error.ts";
import { parsePostgresAddress } from "./address.ts";
import { conflictTriesMax } from "./limits.ts";
import { createPostgresBackend, type PostgresBackendOptions } from "./postgres-backend.ts";

export interface PostgresStoreOptions extends Pick<PostgresBackendOptions, "session"> {
  /** `postgres://user:password@host:port/database`, with `sslmode` and the other parameters as PostgreSQL's own programs take them. */
  readonly url: string;
  readonly logger?: Logger;
  readonly connectionsMax?: number;
}

const connectionsMaxDefault = 10;
const conflictPauseMs = 20;

/** Faults that pass, or that somebody who sees to the server can mend while the broker runs on, and what a caller is told. */
const answerByFault: ReadonlyMap<StoreFault, ErrorName> = new Map<StoreFault, ErrorName>([
  ["unavailable", "storeUnreachable"],
  ["conflict", "storeUnreachable"],
  ["full", "storeUnreachable"],
  ["io", "storeUnreachable"],
  ["read-only", "storeUnreachable"],
  ["cannot-open", "storeUnreachable"],
  ["exhausted", "busy"],
]);

/**
 * A store in a PostgreSQL database, which other nodes may use at the same time. No fault of the server ends the process: a call that meets one
 * fails with error 200207, or 200300 where more calls wait than connections serve, and a StoreError as its cause. `start` throws the
 * StoreError itself.
 * @throws StoreError when the address is malformed.
 */
export function createPostgresStore(options: PostgresStoreOptions): SqlStore {
  const { url, logger = silentLogger, connectionsMax = connectionsMaxDefault, ...rest } = options;
  const backend = createPostgresBackend({ ...rest, address: parsePostgresAddress(url), logger, connectionsMax });
  return new Proxy(new SqlStore(backend, logger), { get: getAnswering });
}

/** Every call of the store is one transaction, so that one which was undone can be made again as a whole. */
function getAnswering(store: SqlStore, name: string | symbol): unknown {
  const member: unknown = Reflect.get(store, name, store);
  if (typeof member !== "function") return member;
  const call = async (args: readonly unknown[]): Promise<unknown> => Reflect.apply(member, store, args);
  if (name === "start") return (...args: unknown[]) => call(args);
  return async (...args: unknown[]) => {
    try {
      return await callUntilKept(async () => call(args));
    } catch (error) {
      throw toAnswer(error);
    }
  };
}

async function callUntilKept<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof StoreError) || error.fault !== "conflict" || tries === conflictTriesMax) throw error;
      await pause(Math.random() * conflictPauseMs * tries);
    }
  }
}

function toAnswer(error: unknown): unknown {
  const name = error instanceof StoreError ? answerByFault.get(error.fault) : undefined;
  return name === undefined ? error : new BrokerError(name, { cause: error });
}
