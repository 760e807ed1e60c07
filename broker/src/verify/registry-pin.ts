import type { ChainClient, ChainIdentity } from "./chain-client.ts";
import type { KnownRegistries } from "./known-registries.ts";
import { Unverifiable } from "./unverifiable.ts";

/** Why the registry is trusted. */
export type PinnedBy = "you" | "the known registries" | "first use";

export interface PinOptions {
  readonly registry: string | undefined;
  readonly remember: boolean;
  readonly known: KnownRegistries;
}

/** Decides whether a registry is trusted: on a shared chain, anybody can deploy a registry that claims anything. */
export class RegistryPin {
  readonly #options: PinOptions;
  /** The chain at the time of `check`; undefined if the user named the registry. `keep` remembers the registry for this chain, whatever the node says later. */
  #checked: ChainIdentity | undefined;

  constructor(options: PinOptions) {
    this.#options = options;
  }

  /** Returns why the registry is trusted. @throws Unverifiable if it is not. */
  async check(found: string, chain: ChainClient): Promise<PinnedBy> {
    const { registry, remember, known } = this.#options;
    if (registry !== undefined) return "you";
    const identity = await chain.identity();
    this.#checked = identity;
    if (this.#isKnown(found, { identity, pinned: known.list(identity) })) return "the known registries";
    if (remember) return "first use";
    throw new Unverifiable(
      `no registry is pinned for ${nameOf(identity)}. The registry found is ${found}: compare it with the address from the broker's operator, ` +
        "then pass --registry, or --remember to trust it on first use",
    );
  }

  /**
   * With `remember`, remembers a registry after a successful verification. Returns a warning if nobody has confirmed the remembered registry, else "".
   * @throws Unverifiable if another command remembered another registry on first use since `check`.
   */
  async keep(
    found: string,
    { chain, pinnedBy }: { readonly chain: ChainClient; readonly pinnedBy: PinnedBy },
  ): Promise<string> {
    const { remember, known } = this.#options;
    if (!remember || pinnedBy === "the known registries") return "";
    const identity = this.#checked ?? (await chain.identity());
    if (pinnedBy === "you") {
      await known.add(identity, found);
      return "";
    }
    await known.add(identity, found, (pinned) => void this.#isKnown(found, { identity, pinned }));
    return (
      `warning: registry ${found} of ${nameOf(identity)} is trusted on first use and remembered in ${known.file}. ` +
      "Compare it with the address from the broker's operator."
    );
  }

  /** Whether the registry is among the `pinned` ones of the chain; false if there are none. @throws Unverifiable if there are only others. */
  #isKnown(
    found: string,
    { identity, pinned }: { readonly identity: ChainIdentity; readonly pinned: readonly string[] },
  ): boolean {
    if (pinned.length === 0 || pinned.includes(found)) return pinned.length > 0;
    const known = `known ${pinned.join(", ")} (${this.#options.known.file})`;
    throw new Unverifiable(
      `the registry of ${nameOf(identity)} has changed: found ${found}, ${known}. Somebody may present their own ` +
        "registry as the broker's. If you trust the new one, pass --registry, and --remember to remember it",
    );
  }
}

function nameOf({ chainId, genesisHash }: ChainIdentity): string {
  return `chain ${chainId} (first block ${genesisHash})`;
}
