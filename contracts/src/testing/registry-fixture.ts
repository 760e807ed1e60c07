import {
  type Address,
  BaseError,
  concatHex,
  ContractFunctionRevertedError,
  createWalletClient,
  getAddress,
  getContractAddress,
  type Hash,
  type Hex,
  keccak256,
  parseEventLogs,
  publicActions,
  stringToHex,
  type Transport,
  type TransactionReceipt,
} from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { topicRegistryAbi, topicRegistryBytecode } from "../artifacts.generated.ts";
import { everyone } from "../constants.ts";

// The accounts that anvil funds; publicly known, for tests only.
const mnemonic = "test test test test test test test test test test test junk";
export const alice = mnemonicToAccount(mnemonic, { addressIndex: 0 });
export const bob = mnemonicToAccount(mnemonic, { addressIndex: 1 });
export const carol = mnemonicToAccount(mnemonic, { addressIndex: 2 });

/** A batch as an argument of the registry's calls. */
export interface Batch {
  readonly topic: Address;
  readonly count: number;
  readonly eventsRoot: Hash;
  readonly events: Hex;
}

const pollingIntervalMs = 5;

/** Gas limit of each publish: more than any test needs. With only the estimated gas, the embedded chain would not run its own code for `publish`. */
const publishGasMax = 10_000_000n;

function createClient(transport: Transport) {
  return createWalletClient({ account: alice, transport, pollingInterval: pollingIntervalMs }).extend(publicActions);
}

/** A new registry on a chain, with the calls that tests need. Alice sends unless the test names another account. */
export class RegistryFixture {
  readonly client: ReturnType<typeof createClient>;
  readonly registry: Address;

  private constructor(client: ReturnType<typeof createClient>, registry: Address) {
    this.client = client;
    this.registry = registry;
  }

  static async deploy(transport: Transport): Promise<RegistryFixture> {
    const client = createClient(transport);
    const receipt = await deploy(client, topicRegistryBytecode);
    return new RegistryFixture(client, receipt.address);
  }

  async open(name: string | readonly string[], account = alice, writers = everyone): Promise<TransactionReceipt> {
    const call = { ...this.contract, functionName: "open", args: [[name].flat(), writers], account } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  async openAndPublish(names: readonly string[], batches: readonly Batch[]): Promise<TransactionReceipt> {
    const args = [names, everyone, batches] as const;
    const call = { ...this.contract, functionName: "openAndPublish", args, account: alice } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  /** Creates a set of writers and returns its number. */
  async createWriters(accounts: readonly Address[], owner = alice): Promise<number> {
    const call = { ...this.contract, functionName: "createWriters", args: [accounts], account: owner } as const;
    const receipt = await this.settle(await this.client.writeContract({ ...call, ...legacy }));
    const [created] = parseEventLogs({ abi: topicRegistryAbi, eventName: "WritersCreated", logs: receipt.logs });
    if (created === undefined) throw new Error("no set was created");
    return created.args.writers;
  }

  async setWriter(
    writers: number,
    account: Address,
    { isAllowed, by = alice }: { readonly isAllowed: boolean; readonly by?: typeof alice },
  ): Promise<TransactionReceipt> {
    const args = [writers, account, isAllowed] as const;
    const call = { ...this.contract, functionName: "setWriter", args, account: by } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  async setWriters(name: string, writers: number, account = alice): Promise<TransactionReceipt> {
    const call = { ...this.contract, functionName: "setWriters", args: [name, writers], account } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  async close(name: string, account = alice): Promise<TransactionReceipt> {
    const call = { ...this.contract, functionName: "close", args: [name], account } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  async publish(batches: readonly Batch[], account = alice): Promise<TransactionReceipt> {
    const call = { ...this.contract, functionName: "publish", args: [batches], account, gas: publishGasMax } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  async publishAll(batches: readonly Batch[], account = alice): Promise<TransactionReceipt> {
    const call = { ...this.contract, functionName: "publishAll", args: [batches], account } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  /** Opens a topic and returns its address. */
  async openTopic(name: string, account = alice): Promise<Address> {
    await this.open(name, account);
    return this.topicOf(name);
  }

  async deployCode(bytecode: Hex): Promise<Address> {
    return (await deploy(this.client, bytecode)).address;
  }

  topicOf(name: string): Promise<Address> {
    return this.client.readContract({ ...this.contract, functionName: "topicOf", args: [name] });
  }

  /** The address that a topic of this name has or will have. */
  addressOf(name: string): Address {
    const implementation = getContractAddress({ from: this.registry, nonce: 1n });
    const bytecode = concatHex([
      "0x3d602d80600a3d3981f3363d3d373d3d3d363d73",
      implementation,
      "0x5af43d82803e903d91602b57fd5bf3",
    ]);
    return getContractAddress({ opcode: "CREATE2", from: this.registry, salt: keccak256(stringToHex(name)), bytecode });
  }

  topicCount(): Promise<bigint> {
    return this.client.readContract({ ...this.contract, functionName: "topicCount" });
  }

  stateOf(topic: Address) {
    return this.client.readContract({ ...this.contract, functionName: "stateOf", args: [topic] });
  }

  topics(offset: bigint, limit: bigint) {
    return this.client.readContract({ ...this.contract, functionName: "topics", args: [offset, limit] });
  }

  get contract() {
    return { address: this.registry, abi: topicRegistryAbi } as const;
  }

  private async settle(hash: Hash): Promise<TransactionReceipt> {
    // While viem looks for a replacement transaction, it can miss the block with this transaction. If no other block follows, it then waits forever.
    const receipt = await this.client.waitForTransactionReceipt({ hash, checkReplacement: false });
    if (receipt.status !== "success") throw new Error(`transaction ${hash} was reverted`);
    return receipt;
  }
}

/** Fees of every transaction. The price is fixed, because the price that the chain suggests climbs with each transaction. */
export const legacy = { chain: null, type: "legacy", gasPrice: 10n } as const;

async function deploy(client: ReturnType<typeof createClient>, bytecode: Hex) {
  const hash = await client.sendTransaction({ data: bytecode, ...legacy });
  const { contractAddress: address } = await client.waitForTransactionReceipt({ hash, checkReplacement: false });
  if (!address) throw new Error("the contract was not created");
  return { address: getAddress(address) };
}

/** Returns the registry of the current test. */
export type GetFixture = () => RegistryFixture;

/** The logs of a transaction, in order, as the event's name and its arguments. @throws Error for a log of another contract. */
export function decodeLogs({ to, logs }: TransactionReceipt) {
  const decoded = parseEventLogs({ abi: topicRegistryAbi, logs });
  if (decoded.length !== logs.length || logs.some(({ address }) => address !== to)) throw new Error("a foreign log");
  return decoded.map(({ eventName, args }) => ({ eventName, args }));
}

/** The custom error that a call fails with. */
export async function revertOf(call: Promise<unknown>): Promise<{ name: string; args: readonly unknown[] }> {
  const failure = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  const revert = failure instanceof BaseError ? failure.walk((e) => e instanceof ContractFunctionRevertedError) : null;
  if (!(revert instanceof ContractFunctionRevertedError))
    throw new Error("the call did not revert", { cause: failure });
  return { name: revert.data?.errorName ?? "unknown", args: revert.data?.args ?? [] };
}
