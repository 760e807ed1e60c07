import type { RuleAction } from "../../domain/access-rule.ts";

/** Who a caller is, and which actions it may do. An action may be allowed on some topics only: each call checks the right on its topic. */
export interface CallerRights {
  /** `tenant/name`, or the name alone without a tenant; undefined if access control is off. */
  readonly principal: string | undefined;
  /** When the caller's credential expires, in milliseconds since the epoch; undefined for never. */
  readonly expiresAt: number | undefined;
  readonly actions: readonly RuleAction[];
}
