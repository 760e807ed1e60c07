import { BrokerError, isBrokerError, quote } from "@stele/wire";
import { findRuleProblems, isRoleName, rolesMax } from "../../domain/access-role.ts";
import type { AccessRule } from "../../domain/access-rule.ts";
import type { ApiKeys } from "../../ports/api-keys.ts";
import type { AuditedOrder, AuditTrail } from "../access/audit-trail.ts";
import type { Caller } from "../access/caller.ts";
import type { KeyRing } from "../access/key-ring.ts";
import type { Role } from "../access/role-table.ts";
import type { Page, PageCall } from "./calls.ts";

/** Maximum number of rules in one page of roles. The page ends before the role that would exceed this number. */
const rulesPerPageMax = 1_000;

/** The store of roles, and this node's copy of it. */
export interface RoleParts {
  readonly apiKeys: Pick<ApiKeys, "putRole" | "deleteRole">;
  readonly ring: Pick<KeyRing, "roles" | "refresh">;
}

export interface RoleOrdersOptions {
  /** Undefined while access control is off. */
  readonly roles: RoleParts | undefined;
  /** Undefined without an audit log. */
  readonly trail: AuditTrail | undefined;
}

/** Shows roles, and changes those of the store. A change takes effect on this node before its answer, and on other nodes within a second. */
export class RoleOrders {
  readonly #options: RoleOrdersOptions;

  constructor(options: RoleOrdersOptions) {
    this.#options = options;
  }

  /** Sorted by name; `next` is the last name of the page, or undefined at the end of the list. @throws BrokerError 100705. */
  list({ after, limit }: PageCall): Page<Role> {
    const { roles } = this.#parts().ring;
    const rest = roles.names().filter((name) => after === undefined || name > after);
    const items: Role[] = [];
    let rules = 0;
    for (const role of rest.slice(0, limit).flatMap((name) => roles.find(name) ?? [])) {
      rules += role.rules.length;
      if (rules > rulesPerPageMax) break;
      items.push(role);
    }
    return { items, next: items.length < rest.length ? items.at(-1)?.name : undefined };
  }

  /** @throws BrokerError 100704, 100705. */
  get(name: string): Role {
    const role = this.#parts().ring.roles.find(name);
    if (role === undefined) throw new BrokerError("roleNotExist", { details: quote(name) });
    return role;
  }

  /** @throws BrokerError 100704 if another node deletes the role meanwhile; 100705, 200001, 200207. */
  async set(caller: Caller, name: string, rules: readonly AccessRule[]): Promise<Role> {
    const { apiKeys, ring } = this.#parts();
    checkRole(name, rules);
    if (ring.roles.isOfFile(name)) {
      throw new BrokerError("roleFixed", {
        details: `${quote(name)} is built in or in the config file; use another name`,
      });
    }
    await this.#change(
      { caller, action: "role set", subject: { role: name, rules: JSON.stringify(rules) } },
      async () => {
        if (await apiKeys.putRole({ name, rules }, rolesMax)) return;
        throw new BrokerError("roleFixed", {
          details: `the store has ${rolesMax} roles, the most there can be; delete one first`,
        });
      },
    );
    return this.get(name);
  }

  /** Deletes a role of the store, even if a role of the config file hides it. @throws BrokerError 100704, 100705, 200001, 200207. */
  async delete(caller: Caller, name: string): Promise<void> {
    const { apiKeys } = this.#parts();
    checkRole(name, []);
    await this.#change({ caller, action: "role delete", subject: { role: name } }, async () => {
      if (await apiKeys.deleteRole(name)) return;
      throw new BrokerError("roleNotExist", { details: `${quote(name)} is not in the store` });
    });
  }

  async #change(order: AuditedOrder<void>, task: () => Promise<void>): Promise<void> {
    const { ring } = this.#parts();
    const run = async (): Promise<void> => {
      try {
        await task();
        await ring.refresh();
      } catch (cause) {
        if (isBrokerError(cause)) throw cause;
        const details =
          "the roles cannot be written or read again; the change may be stored: list the roles before you try again";
        throw new BrokerError("storeUnreachable", { details, cause });
      }
    };
    await (this.#options.trail === undefined ? run() : this.#options.trail.around(order, run));
  }

  #parts(): RoleParts {
    const { roles } = this.#options;
    if (roles === undefined)
      throw new BrokerError("roleFixed", { details: "access control is off; see docs/access.md" });
    return roles;
  }
}

function checkRole(name: string, rules: readonly AccessRule[]): void {
  const problems = isRoleName(name)
    ? findRuleProblems(rules, "rules")
    : ["a role's name is 1 to 64 letters, digits, dots, hyphens or underscores"];
  if (problems.length > 0) throw new BrokerError("parameterInvalid", { details: problems.join("; ") });
}
