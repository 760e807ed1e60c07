import type { RuleAction } from "../../domain/access-rule.ts";

/** What a caller may do. A right may be to some topics alone: each call asks for the right to its own. */
export interface CallerRights {
  /** The tenant, where there is one, a slash, and the name; undefined where nobody logs in. */
  readonly principal: string | undefined;
  /** When its credential ends, in milliseconds since the epoch; undefined for never. */
  readonly expiresAt: number | undefined;
  readonly actions: readonly RuleAction[];
}
