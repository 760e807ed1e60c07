import { BrokerError } from "@stele/wire";
import { GroupCommit } from "../../lib/group-commit.ts";
import type { HeldKey, PublishKey, PublishKeys } from "../../ports/publish-keys.ts";
import type { KeySession } from "../key-session.ts";
import { fenceOf } from "./claim.ts";
import type { KeyJanitor } from "./key-janitor.ts";

/** Maximum number of keys that one write frees; the store looks up each key first. */
const releasesPerWriteMax = 1_000;

export interface KeyReleasesOptions {
  readonly keys: Pick<PublishKeys, "findPublishKey" | "releasePublishKeys">;
  readonly janitor: Pick<KeyJanitor, "adjustCount">;
}

interface Release {
  readonly key: PublishKey;
  readonly session: KeySession;
}

/** `fenced`: another node has the session. `unknown`: the key was not in use. `freed`: it was in use, and is free now unless its row is damaged. */
type Outcome = "fenced" | "unknown" | "freed";

/** Frees publish keys in the order of the calls. Calls that come during a write share the next write, at most {@link releasesPerWriteMax} of them. */
export class KeyReleases {
  readonly #options: KeyReleasesOptions;
  readonly #writes: GroupCommit<Release, Outcome>;

  constructor(options: KeyReleasesOptions) {
    this.#options = options;
    this.#writes = new GroupCommit({
      commit: (releases) => this.#write(releases),
      itemsMax: releasesPerWriteMax,
      mayBeCausedByOneItem: () => false,
    });
  }

  /**
   * Resolves once the key is free on disk. Returns whether the key was in use; a damaged row stays, and counts as in use. Rejects if the store fails, and with
   * 200300 if another node has taken the session: its client may use the key for another publish by now.
   */
  async release(key: PublishKey, session: KeySession): Promise<boolean> {
    const outcome = await this.#writes.add({ key, session });
    if (outcome === "fenced") throw new BrokerError("busy", { details: "another node has the session" });
    return outcome === "freed";
  }

  async #write(releases: readonly Release[]): Promise<readonly Outcome[]> {
    const { keys, janitor } = this.#options;
    const rows = await Promise.all(releases.map(({ key }) => keys.findPublishKey(key)));
    const held = new Map<string, HeldKey>(); // A client may release a key several times at once, and the key counts once.
    for (const [index, row] of rows.entries()) {
      if (row === undefined || "isDamaged" in row) continue;
      held.set(nameOf(row), { ...row, fence: fenceOf(releases[index]?.session) });
    }
    const fenced = new Set((held.size > 0 ? await keys.releasePublishKeys([...held.values()]) : []).map(nameOf));
    for (const [name, { scope }] of held) if (!fenced.has(name)) janitor.adjustCount(scope, -1);
    return releases.map(({ key }, index) => {
      if (fenced.has(nameOf(key))) return "fenced";
      return rows[index] === undefined ? "unknown" : "freed";
    });
  }
}

function nameOf({ scope, key }: PublishKey): string {
  return JSON.stringify([scope, key]);
}
