import type { RuleAction } from "../../domain/access-rule.ts";

/** What a caller may do, on all topics or only on some: each call checks the right on its own topic. */
export interface CallerRights {
  /** `tenant/name`, or the name alone without a tenant; undefined if access is off. */
  readonly principal: string | undefined;
  /** When the caller's credential expires, in milliseconds since the epoch; undefined for never. */
  readonly expiresAt: number | undefined;
  readonly actions: readonly RuleAction[];
}
