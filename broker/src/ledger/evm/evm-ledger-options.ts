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
export type TopicWriters = "everyone" | "own";

export interface EvmLedgerOptions {
  readonly groupId: GroupId;
  readonly provider: EvmProvider;
  /** The signer's secp256k1 key, 32 bytes. Nobody else may send transactions with it. */
  readonly privateKey: Uint8Array;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Refuses an endpoint of another chain. */
  readonly chainId?: number;
  /** Where the registry is, unless it is remembered; left out, it is looked for, and deployed where there is none. */
  readonly registry?: RegistryChoice;
  /** Who may write to the topics that this ledger opens: everyone (when left out), or the group's own signers. */
  readonly topicWriters?: TopicWriters;
  /** Accounts beside the group's own signers that may write to them, in lower case. */
  readonly writers?: readonly Address[];
  /** What is remembered of this group's chain; nothing when left out. */
  readonly memory?: GroupMemory;
  readonly limits?: ConfiguredLimits;
  /** What is read of what others write; what every broker reads when left out. */
  readonly eventRules?: EventRules;
  /** Whether the chain never takes a block back, as the embedded one. */
  readonly isFinal?: boolean;
  /** Which blocks count as final; all when left out. */
  readonly finality?: Finality;
  /** How long the fate of a transaction is waited for. */
  readonly deadlineMs?: number;
  /** Where transactions stand before they are sent. Left out for a chain whose waiting transactions end with this process. */
  readonly journal?: Journal;
  /** Which fees are offered; `auto` when left out. */
  readonly fees?: FeeMode;
  /** The most that is ever offered for a unit of gas, in wei. */
  readonly feeMax?: bigint;
  /** How long a transaction waits in the endpoint's pool before it offers more. */
  readonly feeBumpAfterMs?: number;
  /** Between two looks at an endpoint without subscriptions. */
  readonly pollMs?: number;
}
