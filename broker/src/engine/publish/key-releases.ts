import { BrokerError } from "@stele/wire";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { PublishKey, PublishKeys } from "../../ports/publish-keys.ts";
import type { KeySession } from "../key-session.ts";
import { fenceOf } from "./claim.ts";
import type { KeyJanitor } from "./key-janitor.ts";

/** Maximum number of keys that one write frees; the store looks up each key first. */
const releasesPerWriteMax = 1_000;

export interface KeyReleasesOptions {
  readonly keys: Pick<PublishKeys, "findPublishKey" | "releasePublishKeys">;
  readonly janitor: Pick<KeyJanitor, "adjustCount">;
}

interface Release extends Deferred<boolean> {
  readonly key: PublishKey;
  readonly session: KeySession;
}

/** Frees publish keys in the order of the calls. Calls that come during a write share the next write, at most `releasesPerWriteMax` of them. */
export class KeyReleases {
  readonly #options: KeyReleasesOptions;
  #waiting: Release[] = [];
  #isRunning = false;

  constructor(options: KeyReleasesOptions) {
    this.#options = options;
  }

  /**
   * Resolves once the key is free on disk, to whether the key was in use. A damaged row stays, and counts as in use. Rejects if the store fails, and with
   * 200300 if another node has taken the session: its client may use the key for another publish by now.
   */
  release(key: PublishKey, session: KeySession): Promise<boolean> {
    const deferred = createDeferred<boolean>();
    this.#waiting.push({ key, session, ...deferred });
    if (!this.#isRunning) void this.#run();
    return deferred.promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#waiting.length > 0) await this.#write(this.#waiting.splice(0, releasesPerWriteMax));
    this.#isRunning = false;
  }

  /** Never rejects. */
  async #write(batch: readonly Release[]): Promise<void> {
    const { keys, janitor } = this.#options;
    try {
      const rows = await Promise.all(batch.map(({ key }) => keys.findPublishKey(key)));
      const held = rows.flatMap((row, index) =>
        row === undefined || "isDamaged" in row ? [] : { ...row, fence: fenceOf(batch[index]?.session) },
      );
      const fenced = new Set((held.length > 0 ? await keys.releasePublishKeys(held) : []).map(nameOf));
      for (const row of held) if (!fenced.has(nameOf(row))) janitor.adjustCount(row.scope, -1);
      for (const [index, { key, resolve, reject }] of batch.entries()) {
        if (fenced.has(nameOf(key))) reject(new BrokerError("busy", { details: "another node has the session" }));
        else resolve(rows[index] !== undefined);
      }
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}

function nameOf({ scope, key }: PublishKey): string {
  return JSON.stringify([scope, key]);
}
