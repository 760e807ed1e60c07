import type { EmbeddedChain } from "@stele/chain";
import { loadKey } from "./signer.ts";
import type { GroupConfig } from "../config/derived.ts";
import type { Secrets } from "../config/load-config.ts";
import type { Config } from "../config/settings.ts";
import { toEventRules } from "../domain/event-rules.ts";
import type { GroupId } from "../domain/group-id.ts";
import type { Address } from "../domain/topic.ts";
import { EndpointSet } from "../ledger/evm/endpoint/endpoint-set.ts";
import { EvmLedger } from "../ledger/evm/evm-ledger.ts";
import type { EvmLedgerOptions } from "../ledger/evm/evm-ledger-options.ts";
import type { GroupMemory, RegistryChoice } from "../ledger/evm/registry/settle-registry.ts";
import type { CleanupStack } from "../lib/cleanup-stack.ts";
import type { Logger } from "../lib/logger.ts";
import type { DataFolder } from "../lib/system/data-folder.ts";
import type { Clock } from "../ports/clock.ts";
import type { Coordinator } from "../ports/coordinator.ts";
import type { GroupRecords } from "../ports/group-records.ts";
import type { Journal } from "../ports/journal.ts";
import type { Ledger } from "../ports/ledger.ts";
import type { Store } from "../ports/store.ts";

export interface GroupOptions {
  readonly folder: DataFolder;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly cleanup: CleanupStack;
  readonly store: Journal & GroupRecords & Pick<Store, "findHead">;
  /** Whether the store outlasts this process. */
  readonly isRemembered: boolean;
  /** Knows the signers of the other nodes; undefined for a single node. */
  readonly coordinator: Pick<Coordinator, "listSigners"> | undefined;
  /** Limits and extension prefix of the events that this broker may publish. */
  readonly publishing: Pick<Config, "contentBytesMax" | "extensionsBytesMax" | "extensionPrefix">;
  /** False for a broker on a restored folder: the original broker may still use the keys. */
  readonly maySign: boolean;
  /** The embedded chain and its signer's key, if a group is on it. */
  readonly embedded: { readonly chain: EmbeddedChain; readonly privateKey: Uint8Array } | undefined;
}

/** Builds the ledger of each group. @throws Error if a signer's key cannot be read. */
export async function createLedgers(groups: readonly GroupConfig[], parts: GroupOptions): Promise<readonly Ledger[]> {
  return Promise.all(groups.map(async (group) => new EvmLedger(await toOptions(group, parts))));
}

/** An encoded list of events is less than this many times as long as its events. */
const listGrowth = 2;

async function toOptions(group: GroupConfig, parts: GroupOptions): Promise<EvmLedgerOptions> {
  const common = {
    groupId: group.id,
    topicWriters: group.topicWriters,
    writers: group.writers.map((account) => account.toLowerCase() as Address), // Checked with the settings.
    clock: parts.clock,
    logger: parts.logger.child({ groupId: group.id }),
    limits: {
      eventsPerTransactionMax: group.transactionEventsMax,
      bytesPerTransactionMax: group.transactionBytesMax,
      transactionsInFlightMax: group.transactionsInFlightMax,
    },
    eventRules: toEventRules({
      ...parts.publishing,
      batchBytesMax: listGrowth * group.transactionBytesMax,
      keyPrefixes: [parts.publishing.extensionPrefix],
    }),
  };
  return group.endpoints === "embedded"
    ? { ...common, ...embeddedOptions(parts) }
    : { ...common, ...(await externalOptions({ ...group, endpoints: group.endpoints }, parts)) };
}

function embeddedOptions({ embedded }: GroupOptions): Pick<EvmLedgerOptions, "provider" | "privateKey"> {
  if (embedded === undefined) throw new Error("a group is on the embedded chain, which was not started");
  return { provider: embedded.chain, privateKey: embedded.privateKey };
}

const weiPerGwei = 1_000_000_000;

type ExternalGroup = GroupConfig & { readonly endpoints: readonly string[] };

async function externalOptions(group: ExternalGroup, parts: GroupOptions) {
  const { id, endpoints: addresses, chainId } = group;
  const logger = parts.logger.child({ groupId: id });
  const privateKey = await loadKey(group, { ...parts, logger });
  const provider = new EndpointSet({ addresses, chainId, clock: parts.clock, logger });
  parts.cleanup.add(() => provider.close(), "endpoints");
  return {
    provider,
    privateKey,
    deadlineMs: group.publishTimeoutMs,
    pollMs: group.pollMs,
    journal: parts.store,
    maySign: parts.maySign,
    finality: group.finality,
    fees: group.fees,
    feeBumpAfterMs: group.feeBumpAfterMs,
    ...(group.feeMaxGwei === undefined ? {} : { feeMax: BigInt(Math.round(group.feeMaxGwei * weiPerGwei)) }),
    ...(group.registry === undefined ? {} : { registry: group.registry as RegistryChoice }), // Checked with the settings.
    ...(parts.isRemembered ? { memory: memoryOf(id, parts) } : {}),
  };
}

function memoryOf(id: GroupId, { store, coordinator }: Pick<GroupOptions, "store" | "coordinator">): GroupMemory {
  return {
    find: () => store.findGroupRecord(id),
    save: (record) => store.saveGroupRecord(id, record),
    saveWriters: async (writers, former) => (await store.saveWriters(id, writers, former)) ?? writers,
    listSigners: async () => coordinator?.listSigners(id) ?? [],
    findIndexedBlock: async () => (await store.findHead(id))?.blockNumber,
  };
}
