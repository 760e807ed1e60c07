import * as z from "zod";
import { changeUserFile, readUserFile, userFile } from "../lib/system/user-file.ts";
import type { ChainIdentity } from "./chain-client.ts";
import { Unverifiable } from "./unverifiable.ts";

const schema = z.strictObject({
  version: z.literal(1),
  chains: z.array(
    z.strictObject({
      chainId: z.int(),
      genesisHash: z.string(),
      registries: z.array(z.string().regex(/^0x[0-9a-f]{40}$/)),
    }),
  ),
});

type Content = z.infer<typeof schema>;

/** Default path of a user's known registries. */
export function knownRegistriesFile(env: Readonly<Record<string, string | undefined>>): string {
  return userFile("known-registries.json", env);
}

/** The registries that a user trusts, by chain, like known_hosts of ssh. @throws Unverifiable for a file that is malformed, or cannot be read or written. */
export class KnownRegistries {
  readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  list(chain: ChainIdentity): readonly string[] {
    return registriesOf(
      this.#read(() => readUserFile(this.file)),
      chain,
    );
  }

  /** Adds a registry. `check` gets the chain's present registries while no other process can add one; if `check` throws, nothing is added. */
  async add(
    chain: ChainIdentity,
    registry: string,
    check: (registries: readonly string[]) => void = () => {},
  ): Promise<void> {
    try {
      await changeUserFile(this.file, (text) => {
        const content = this.#read(() => text);
        check(registriesOf(content, chain));
        return withRegistry(content, { chain, registry });
      });
    } catch (error) {
      if (error instanceof Unverifiable) throw error;
      throw new Unverifiable(`cannot write ${this.file}; name another file with --known-registries`, error);
    }
  }

  #read(getText: () => string | undefined): Content {
    try {
      const text = getText();
      return text === undefined ? { version: 1, chains: [] } : schema.parse(JSON.parse(text));
    } catch (error) {
      throw new Unverifiable(`${this.file} does not contain known registries; fix it or move it away`, error);
    }
  }
}

/** The text of a file that also has `registry`. */
function withRegistry(
  content: Content,
  { chain, registry }: { readonly chain: ChainIdentity; readonly registry: string },
): string {
  const { chainId, genesisHash } = chain;
  const others = content.chains.filter((known) => !isSame(known, chain));
  const registries = [...new Set([...registriesOf(content, chain), registry])];
  const next: Content = { version: 1, chains: [...others, { chainId, genesisHash, registries }] };
  return `${JSON.stringify(next, null, 2)}\n`;
}

function registriesOf({ chains }: Content, chain: ChainIdentity): readonly string[] {
  return chains.find((known) => isSame(known, chain))?.registries ?? [];
}

function isSame(left: ChainIdentity, right: ChainIdentity): boolean {
  return left.chainId === right.chainId && left.genesisHash === right.genesisHash;
}
