import type { GroupId } from "../../domain/group-id.ts";
import type { QuotaTable } from "../../domain/quota.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import { Access } from "./access.ts";
import { KeyRing, type KeyRingParts } from "./key-ring.ts";
import { allowAll, type Policy } from "./policy.ts";
import { Quotas } from "./quotas.ts";
import { RulesPolicy } from "./rules-policy.ts";

/** Rights by keys; see {@link KeyRingParts}. */
export type KeyOptions = Pick<KeyRingParts, "apiKeys" | "roles" | "certificates" | "sha256"> & {
  readonly quotas?: QuotaTable | undefined;
};

export interface AccessOptions {
  readonly defaultGroupId: GroupId;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Who may do what; everybody may do everything if left out, and without `keys`. */
  readonly policy?: Policy | undefined;
  /** Undefined where clients need no key. */
  readonly keys?: KeyOptions | undefined;
}

export interface CreatedAccess {
  readonly access: Access;
  /** To be started before the first call, and stopped. Undefined where there are no keys. */
  readonly keyRing: KeyRing | undefined;
}

/** `onChecked` is called when somebody's rights may have ended. */
export function createAccess(options: AccessOptions, onChecked: () => void): CreatedAccess {
  const { defaultGroupId, keys, policy = allowAll } = options;
  if (keys === undefined) return { access: new Access({ policy, defaultGroupId }), keyRing: undefined };
  const quotas = keys.quotas && new Quotas(keys.quotas, options.clock);
  const keyRing = new KeyRing({ ...options, ...keys, onChecked });
  return { access: new Access({ policy: new RulesPolicy(keyRing), defaultGroupId, quotas }), keyRing };
}
