import type { EventRules } from "../../domain/event-rules.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address } from "../../domain/topic.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Journal } from "../../ports/journal.ts";
import type { FeeMode } from "./write/fee-policy.ts";
import type { Finality } from "./read/finality.ts";
import type { EvmProvider } from "./endpoint/rpc.ts";
import type { GroupMemory, RegistryChoice } from "./registry/settle-registry.ts";
import type { ConfiguredLimits } from "./write/transaction-room.ts";

/** Who may write to the topics that a group opens. */
export type WriterPolicy = "everyone" | "own";

export interface EvmLedgerOptions {
  readonly groupId: GroupId;
  readonly provider: EvmProvider;
  /** The signer's secp256k1 key, 32 bytes. Nobody else may send transactions with it. */
  readonly privateKey: Uint8Array;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The group's registry; a remembered registry must match it. If omitted, the ledger searches for a registry, and deploys one if there is none. */
  readonly registry?: RegistryChoice;
  /** Who may write to the topics that this ledger opens; everyone if omitted. */
  readonly topicWriters?: WriterPolicy;
  /** With `topicWriters` "own": accounts in lower case that may write to the topics that this ledger opens, besides the group's signers. */
  readonly writers?: readonly Address[];
  /** Stores the group's chain and registry for the next start. If omitted, the ledger stores nothing. */
  readonly memory?: GroupMemory;
  /** How much fits into one transaction, and how many transactions may be in flight. */
  readonly limits: ConfiguredLimits;
  /** The ledger skips batches of other processes that break these rules; `commonEventRules` if omitted. */
  readonly eventRules?: EventRules;
  /** Which blocks count as final; all if omitted. */
  readonly finality?: Finality;
  /** How long a caller waits for its transaction, in milliseconds. */
  readonly deadlineMs?: number;
  /** Records transactions before they are sent. Only the embedded chain omits it: there, pending transactions end with this process. */
  readonly journal?: Journal;
  /** False for a restored copy of a broker: it reads the chain and signs nothing, since the original may still use the key. True if omitted. */
  readonly maySign?: boolean;
  /** Which fees the ledger offers; `auto` if omitted. */
  readonly fees?: FeeMode;
  /** Upper bound on the price of a unit of gas, in wei. */
  readonly feeMax?: bigint;
  /** How long a transaction waits in the endpoint's pool before the ledger raises its fee, in milliseconds. */
  readonly feeBumpAfterMs?: number;
  /** Pause between two polls of an endpoint that does not announce new blocks, in milliseconds. */
  readonly pollMs?: number;
}
