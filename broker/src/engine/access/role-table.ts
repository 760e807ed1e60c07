import { adminRole, noRights, type StoredRole } from "../../domain/access-role.ts";
import type { AccessRule } from "../../domain/access-rule.ts";
import type { ApiKeys } from "../../ports/api-keys.ts";

export interface RoleTableOptions {
  readonly apiKeys: Pick<ApiKeys, "readRoles">;
  /** The roles of the config file, and the one that every broker has. They win over those of the store. */
  readonly roles: ReadonlyMap<string, readonly AccessRule[]>;
}

/** A role that somebody can have. */
export interface Role {
  readonly name: string;
  readonly source: "broker" | "file" | "store";
  /** None for a damaged one. */
  readonly rules: readonly AccessRule[];
  /** Whether its row in the store is damaged: whoever has a key with it is refused. */
  readonly isDamaged: boolean;
  /** Whether the store has a role of this name as well, which does not count. */
  readonly hidesStored: boolean;
}

/** The rules of each role: of the config file, and of the store at most a second behind it. */
export class RoleTable {
  readonly #options: RoleTableOptions;
  readonly #stored = new Map<string, StoredRole>();
  #revision = 0;

  constructor(options: RoleTableOptions) {
    this.#options = options;
  }

  /** Returns what takes over the changes, and answers the names of the roles that changed. */
  async read(): Promise<() => ReadonlySet<string>> {
    const changes = await this.#options.apiKeys.readRoles(this.#revision);
    return () => {
      const changed = new Set<string>();
      if (changes === undefined) return changed;
      this.#revision = changes.revision;
      for (const name of [...this.#stored.keys()].filter((known) => !changes.names.has(known))) {
        this.#stored.delete(name);
        changed.add(name);
      }
      for (const role of changes.changed) {
        this.#stored.set(role.name, role);
        changed.add(role.name);
      }
      return changed;
    };
  }

  has(name: string): boolean {
    return this.#options.roles.has(name) || this.#stored.get(name)?.rules !== undefined;
  }

  /** A role that is nowhere, or damaged, denies everything. */
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

  /** In the order of their names. */
  names(): readonly string[] {
    return [...new Set([...this.#options.roles.keys(), ...this.#stored.keys()])].toSorted();
  }

  /** Names of roles whose rows are damaged, also of those that a role of the file hides. */
  damaged(): readonly string[] {
    return [...this.#stored.values()].filter(({ rules }) => rules === undefined).map(({ name }) => name);
  }
}
