import type { ChainClient, ChainIdentity } from "./chain-client.ts";
import type { KnownRegistries } from "./known-registries.ts";
import { Unverifiable } from "./unverifiable.ts";

/** Who says that the registry is to be trusted. */
export type PinnedBy = "you" | "the known registries" | "first use";

export interface PinOptions {
  readonly registry: string | undefined;
  readonly remember: boolean;
  readonly known: KnownRegistries;
}

/** Which registry is trusted: on a chain that others write to, anybody can have one, and it says what its owner likes. */
export class RegistryPin {
  readonly #options: PinOptions;
  /** The chain for which a registry was checked: the registry is kept for it, whatever the node says later. */
  #checked: ChainIdentity | undefined;

  constructor(options: PinOptions) {
    this.#options = options;
  }

  /** Whether the registry that was found is pinned, and by whom. @throws Unverifiable when it is not. */
  async check(found: string, chain: ChainClient): Promise<PinnedBy> {
    const { registry, remember, known } = this.#options;
    if (registry !== undefined) return "you";
    const identity = await chain.identity();
    this.#checked = identity;
    const pinned = known.list(identity);
    if (pinned.includes(found)) return "the known registries";
    if (pinned.length > 0) throw changed(found, { pinned, identity, file: known.file });
    if (remember) return "first use";
    throw new Unverifiable(
      `no registry is pinned for ${nameOf(identity)}. The registry found is ${found}: compare it with what the broker's operator told ` +
        "you, then give --registry; or --remember, to take it on first use",
    );
  }

  /** Keeps a registry under which all was verified. Answers a warning where nobody had vouched for it. */
  async keep(
    found: string,
    { chain, pinnedBy }: { readonly chain: ChainClient; readonly pinnedBy: PinnedBy },
  ): Promise<string> {
    const { remember, known } = this.#options;
    if (!remember || pinnedBy === "the known registries") return "";
    const identity = this.#checked ?? (await chain.identity());
    known.add(identity, found);
    if (pinnedBy === "you") return "";
    return (
      `warning: registry ${found} of ${nameOf(identity)} was taken on first use, and is kept in ${known.file}. ` +
      "Compare it with what the broker's operator told you."
    );
  }
}

function changed(
  found: string,
  {
    pinned,
    identity,
    file,
  }: { readonly pinned: readonly string[]; readonly identity: ChainIdentity; readonly file: string },
): Unverifiable {
  return new Unverifiable(
    `the registry of ${nameOf(identity)} has changed: found ${found}, known ${pinned.join(", ")} (${file}). Somebody may pass their own ` +
      "registry off as the broker's. If you trust the new one, give --registry, with --remember to keep it",
  );
}

function nameOf({ chainId, genesisHash }: ChainIdentity): string {
  return `chain ${chainId} (first block ${genesisHash})`;
}
