import { adminRole, noRights, type StoredRole } from "../../domain/access-role.ts";
import type { AccessRule } from "../../domain/access-rule.ts";
import { inSlices, TimeSlices, type Turns } from "../../lib/time-slices.ts";
import type { ApiKeys } from "../../ports/api-keys.ts";

export interface RoleTableOptions {
  readonly apiKeys: Pick<ApiKeys, "readRoles">;
  /** The roles of the config file, and the built-in admin role. They override stored roles of the same name. */
  readonly roles: ReadonlyMap<string, readonly AccessRule[]>;
  readonly clock: Turns;
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

/** The rules of each role of the config file and of the store. `KeyRing` reads the store's roles every 0.4 s; the table has those of the last applied read. */
export class RoleTable {
  readonly #options: RoleTableOptions;
  readonly #slices: TimeSlices;
  #stored: ReadonlyMap<string, StoredRole> = new Map();
  #revision = 0;

  constructor(options: RoleTableOptions) {
    this.#options = options;
    this.#slices = new TimeSlices(options.clock);
  }

  /**
   * Reads changes from the store, and compares roles in slices: there may be 100,000 rules. Returns a function that applies the changes and returns the names
   * of the changed roles. Call it before the next read.
   */
  async read(): Promise<() => ReadonlySet<string>> {
    const read = await this.#options.apiKeys.readRoles(this.#revision);
    const changed = new Set<string>();
    if (read === undefined) return () => changed;
    const stored = new Map(read.roles.map((role) => [role.name, role]));
    await inSlices(new Set([...this.#stored.keys(), ...stored.keys()]), this.#slices, (name) => {
      if (!isSame(this.#stored.get(name), stored.get(name))) changed.add(name);
    });
    return () => {
      this.#revision = read.revision;
      this.#stored = stored;
      return changed;
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
