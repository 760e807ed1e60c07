import type { BlockFeed } from "./read/block-feed.ts";
import type { BlockReader } from "./read/block-reader.ts";
import type { ChainHeight } from "./read/chain-height.ts";
import type { HeadWatcher } from "./read/head-watcher.ts";
import type { OwnWriters } from "./registry/own-writers.ts";
import type { ProofMaker } from "./proof/proof-maker.ts";
import type { Registry } from "./registry/registry.ts";
import type { RegistryGuard } from "./registry/registry-guard.ts";
import type { ChainIdentity } from "./endpoint/rpc.ts";
import type { TopicOpener } from "./registry/topic-opener.ts";
import type { TransactionSender } from "./write/transaction-sender.ts";

/** What a ledger has between `start` and `stop`. */
export interface LedgerParts {
  readonly chain: ChainIdentity;
  readonly heads: HeadWatcher;
  readonly sender: TransactionSender;
  readonly registry: Registry;
  readonly opener: TopicOpener;
  readonly reader: BlockReader;
  readonly feed: BlockFeed;
  readonly height: ChainHeight;
  readonly guard: RegistryGuard;
  readonly proofs: ProofMaker;
  /** Undefined where new topics are for everyone. */
  readonly writers: OwnWriters | undefined;
}

/** What has started is stopped again when a part fails. */
export async function startParts(parts: LedgerParts): Promise<void> {
  const { heads, feed, sender, writers } = parts;
  try {
    await heads.start();
    await feed.start(heads.latest);
    await sender.start();
    writers?.start();
  } catch (error) {
    await stopParts(parts, AbortSignal.abort());
    throw error;
  }
}

/** Everything ends, what is sent at the latest when `signal` aborts. */
export async function stopParts(
  { sender, feed, heads, guard, writers }: LedgerParts,
  signal?: AbortSignal,
): Promise<void> {
  void guard.stop();
  const watched = writers?.stop();
  await sender.stop(signal);
  await feed.stop();
  await heads.stop();
  await watched;
}
