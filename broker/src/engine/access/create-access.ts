import type { GroupId } from "../../domain/group-id.ts";
import type { QuotaTable } from "../../domain/quota.ts";
import type { Logger } from "../../lib/logger.ts";
import type { ApiKeys } from "../../ports/api-keys.ts";
import type { AuditLog } from "../../ports/audit-log.ts";
import type { Clock } from "../../ports/clock.ts";
import { ForwardClock } from "../../lib/forward-clock.ts";
import { Access } from "./access.ts";
import { AuditTrail } from "./audit-trail.ts";
import type { ChangedOwners } from "./caller.ts";
import { FailedLogIns } from "./failed-log-ins.ts";
import { KeyRing, type KeyRingParts } from "./key-ring.ts";
import { allowAll, type Policy } from "./policy.ts";
import { Quotas } from "./quotas.ts";
import { RulesPolicy } from "./rules-policy.ts";
import { type TokenOptions, TokenAuthenticator } from "./token-authenticator.ts";
import { TopicQuota, type TopicQuotaOptions } from "./topic-quota.ts";

/** Options for access by keys, certificates and tokens; see {@link KeyRingParts}. */
export interface KeyOptions extends Pick<KeyRingParts, "roles" | "certificates" | "sha256"> {
  readonly apiKeys: ApiKeys;
  readonly quotas?: QuotaTable | undefined;
  /** Undefined if no tokens are accepted. */
  readonly tokens?: TokenOptions | undefined;
}

export interface AccessOptions {
  readonly defaultGroupId: GroupId;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Decides who may do what if `keys` is undefined; if both are left out, everybody may do everything. */
  readonly policy?: Policy | undefined;
  /** Undefined if access control is off: clients need no credential. */
  readonly keys?: KeyOptions | undefined;
  /** Where the lines of the audit log go; undefined for no audit log. */
  readonly auditLog?: AuditLog | undefined;
  /** Counts topics for quotas. */
  readonly store: TopicQuotaOptions["store"];
  readonly ledgers: readonly { readonly groupId: GroupId }[];
}

export interface CreatedAccess {
  readonly access: Access;
  readonly topicQuota: TopicQuota;
  /** Undefined without an audit log. */
  readonly trail: AuditTrail | undefined;
  /** Undefined while access control is off. */
  readonly roles: { readonly apiKeys: ApiKeys; readonly ring: KeyRing } | undefined;
  /** Start them before the first call, and stop them at the end. */
  readonly services: readonly Service[];
}

/** The key ring, the token authenticator or the audit trail. */
interface Service {
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Builds {@link Access} and its parts. If access is on, calls `onChecked` several times a second with the owners whose rights may have changed. */
export function createAccess(options: AccessOptions, onChecked: (changed: ChangedOwners) => void): CreatedAccess {
  const { defaultGroupId, keys, policy = allowAll, clock, auditLog, store, ledgers } = options;
  const trail = auditLog && new AuditTrail({ auditLog, clock });
  const trails = trail === undefined ? [] : [trail];
  const quotas = keys?.quotas && new Quotas(keys.quotas, clock);
  const topicQuota = new TopicQuota({ quotas, store, clock, groupIds: ledgers.map(({ groupId }) => groupId) });
  if (keys === undefined) {
    const access = new Access({ policy, defaultGroupId, trail });
    return { access, topicQuota, trail, roles: undefined, services: trails };
  }
  const time = new ForwardClock(clock);
  const keyRing = new KeyRing({ ...options, ...keys, time, onChecked });
  const onChanged = (): void => onChecked("all");
  const tokens = keys.tokens && new TokenAuthenticator({ ...keys, ...keys.tokens, time, onChanged });
  const access = new Access({
    policy: new RulesPolicy(keyRing, tokens),
    defaultGroupId,
    quotas,
    failed: new FailedLogIns(options),
    trail,
  });
  const authenticators = tokens === undefined ? [keyRing] : [keyRing, tokens];
  const roles = { apiKeys: keys.apiKeys, ring: keyRing };
  return { access, topicQuota, trail, roles, services: [...trails, ...authenticators] };
}
