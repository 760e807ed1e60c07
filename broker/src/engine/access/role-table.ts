import { adminRole, noRights, type StoredRole } from "../../domain/access-role.ts";
import type { AccessRule } from "../../domain/access-rule.ts";
import type { ApiKeys } from "../../ports/api-keys.ts";

export interface RoleTableOptions {
  readonly apiKeys: Pick<ApiKeys, "readRoles">;
  /** The roles of the config file, and the built-in admin role. They override stored roles of the same name. */
  readonly roles: ReadonlyMap<string, readonly AccessRule[]>;
}

/** A role that keys can have. */
export interface Role {
  readonly name: string;
  readonly source: "broker" | "file" | "store";
  /** Empty for a damaged role. */
  readonly rules: readonly AccessRule[];
  /** Whether the role's row in the store is damaged; then owners of a key with this role are refused. */
  readonly isDamaged: boolean;
  /** Whether the store has a role of this name too, which is ignored. */
  readonly hidesStored: boolean;
}

/** The rules of each role of the config file and of the store; the store's as of the last applied read, which `KeyRing` repeats every 0.4 s. */
export class RoleTable {
  readonly #options: RoleTableOptions;
  readonly #stored = new Map<string, StoredRole>();
  #revision = 0;

  constructor(options: RoleTableOptions) {
    this.#options = options;
  }

  /** Reads changes from the store. Returns a function that applies them and returns the names of the changed roles. */
  async read(): Promise<() => ReadonlySet<string>> {
    const read = await this.#options.apiKeys.readRoles(this.#revision);
    return () => {
      if (read === undefined) return new Set();
      this.#revision = read.revision;
      const former = new Map(this.#stored);
      this.#stored.clear();
      for (const role of read.roles) this.#stored.set(role.name, role);
      const names = new Set([...former.keys(), ...this.#stored.keys()]);
      return new Set([...names].filter((name) => !isSame(former.get(name), this.#stored.get(name))));
    };
  }

  has(name: string): boolean {
    return this.#options.roles.has(name) || this.#stored.get(name)?.rules !== undefined;
  }

  /** The rules of a role. A missing or damaged role denies everything. */
  rulesOf(name: string): readonly AccessRule[] {
    return this.#options.roles.get(name) ?? this.#stored.get(name)?.rules ?? noRights;
  }

  isOfFile(name: string): boolean {
    return this.#options.roles.has(name);
  }

  find(name: string): Role | undefined {
    const [own, stored] = [this.#options.roles.get(name), this.#stored.get(name)];
    if (own !== undefined) {
      const source = name === adminRole ? "broker" : "file";
      return { name, source, rules: own, isDamaged: false, hidesStored: stored !== undefined };
    }
    if (stored === undefined) return undefined;
    const { rules = [] } = stored;
    return { name, source: "store", rules, isDamaged: stored.rules === undefined, hidesStored: false };
  }

  /** All role names, sorted. */
  names(): readonly string[] {
    return [...new Set([...this.#options.roles.keys(), ...this.#stored.keys()])].toSorted();
  }

  /** Names of stored roles whose rows are damaged, even if a role of the config file overrides them. */
  damaged(): readonly string[] {
    return [...this.#stored.values()].filter(({ rules }) => rules === undefined).map(({ name }) => name);
  }
}

function isSame(one: StoredRole | undefined, other: StoredRole | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
