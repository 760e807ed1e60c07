import type { Address } from "../domain/topic.ts";

/** Who may publish to a topic, as the chain says. */
export type TopicWriters =
  | { readonly kind: "everyone" }
  | {
      readonly kind: "set";
      /** Number of the set in the registry. */
      readonly number: number;
      /** The account that created the set, and may change it. */
      readonly owner: Address;
      /** Whether the ledger's own account is in the set. */
      readonly isOwn: boolean;
    };
