import type { Hex } from "viem";

/** An entry of the setting `groups` (docs/groups.md), with the fields that the checks use. */
export interface GroupSetting {
  readonly id: string;
  readonly endpoints: "embedded" | readonly string[];
  readonly signer?: { readonly privateKeyEnv: string };
  readonly registry?: string;
  readonly topicWriters?: "everyone" | "own";
  readonly writers?: readonly string[];
  readonly chainId?: number;
  readonly fees?: string;
  readonly feeMaxGwei?: number;
  readonly finality?: string | number;
  readonly publishTimeoutMs?: number;
  readonly feeBumpAfterMs?: number;
  readonly pollMs?: number;
  readonly transactionBytesMax?: number;
  readonly transactionEventsMax?: number;
  readonly transactionsInFlightMax?: number;
}

/** A group on an external chain, and the key that signs for it. */
export interface ChainGroup extends Omit<GroupSetting, "signer"> {
  readonly privateKey: Hex;
}

/** Default interval between polls, in milliseconds. With the broker's default of a second, tests would spend most of their time waiting. */
const pollMsDefault = 50;

/** The environment of a broker with these groups. */
export function groupsEnv(groups: readonly ChainGroup[]): Record<string, string> {
  const env: Record<string, string> = {};
  const entries = groups.map(({ privateKey, ...group }, index): GroupSetting => {
    const name = `CHECKS_SIGNER_KEY_${index}`;
    env[name] = privateKey;
    return { pollMs: pollMsDefault, ...group, signer: { privateKeyEnv: name } };
  });
  return { ...env, STELE_GROUPS: JSON.stringify(entries) };
}
