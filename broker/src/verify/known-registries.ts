import * as z from "zod";
import { readUserFile, userFile, writeUserFile } from "../lib/system/user-file.ts";
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
export function knownRegistriesFile(env: Readonly<Record<string, string | undefined>>, home: string): string {
  return userFile("known-registries.json", env, home);
}

/** The registries that a user trusts, by chain, like known_hosts of ssh. @throws Unverifiable for a file that is malformed, or cannot be read or written. */
export class KnownRegistries {
  readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  list(chain: ChainIdentity): readonly string[] {
    return this.#read().chains.find((known) => isSame(known, chain))?.registries ?? [];
  }

  add(chain: ChainIdentity, registry: string): void {
    const { chains } = this.#read();
    const { chainId, genesisHash } = chain;
    const others = chains.filter((known) => !isSame(known, chain));
    const registries = [...new Set([...this.list(chain), registry])];
    this.#write({ version: 1, chains: [...others, { chainId, genesisHash, registries }] });
  }

  #read(): Content {
    try {
      const text = readUserFile(this.file);
      return text === undefined ? { version: 1, chains: [] } : schema.parse(JSON.parse(text));
    } catch (error) {
      throw new Unverifiable(`${this.file} does not contain known registries; fix it or move it away`, error);
    }
  }

  #write(content: Content): void {
    try {
      writeUserFile(this.file, `${JSON.stringify(content, null, 2)}\n`);
    } catch (error) {
      throw new Unverifiable(`cannot write ${this.file}; name another file with --known-registries`, error);
    }
  }
}

function isSame(left: ChainIdentity, right: ChainIdentity): boolean {
  return left.chainId === right.chainId && left.genesisHash === right.genesisHash;
}
