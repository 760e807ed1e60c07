import {
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  createWalletClient,
  getAddress,
  type Hash,
  type Hex,
  parseEventLogs,
  publicActions,
  type Transport,
  type TransactionReceipt,
} from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { topicAbi, topicRegistryAbi, topicRegistryBytecode } from "../artifacts.generated.ts";

// The accounts that anvil funds; public knowledge, for tests only.
const mnemonic = "test test test test test test test test test test test junk";
export const alice = mnemonicToAccount(mnemonic, { addressIndex: 0 });
export const bob = mnemonicToAccount(mnemonic, { addressIndex: 1 });
export const carol = mnemonicToAccount(mnemonic, { addressIndex: 2 });

/** A batch as the registry takes it. */
export interface Batch {
  readonly topic: Address;
  readonly count: number;
  readonly eventsRoot: Hash;
  readonly events: Hex;
}

const pollingIntervalMs = 5;

function createClient(transport: Transport) {
  return createWalletClient({ account: alice, transport, pollingInterval: pollingIntervalMs }).extend(publicActions);
}

/** A fresh registry on a chain, and what tests ask of it. Alice sends unless another account is named. */
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

  async open(name: string, account = alice): Promise<TransactionReceipt> {
    const call = { ...this.contract, functionName: "open", args: [name], account } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  async close(name: string, account = alice): Promise<TransactionReceipt> {
    const call = { ...this.contract, functionName: "close", args: [name], account } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  async publish(batches: readonly Batch[], account = alice): Promise<TransactionReceipt> {
    const call = { ...this.contract, functionName: "publish", args: [batches], account } as const;
    return this.settle(await this.client.writeContract({ ...call, ...legacy }));
  }

  /** Opens a topic and answers its address. */
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
    // While viem looks for a replacement it misses a block that comes, which is the last one for now.
    const receipt = await this.client.waitForTransactionReceipt({ hash, checkReplacement: false });
    if (receipt.status !== "success") throw new Error(`transaction ${hash} was reverted`);
    return receipt;
  }
}

/** Fees of every transaction. Fixed, because a price that follows the chain's own advice climbs with each transaction. */
export const legacy = { chain: null, type: "legacy", gasPrice: 10n } as const;

async function deploy(client: ReturnType<typeof createClient>, bytecode: Hex) {
  const hash = await client.sendTransaction({ data: bytecode, ...legacy });
  const { contractAddress: address } = await client.waitForTransactionReceipt({ hash, checkReplacement: false });
  if (!address) throw new Error("the contract was not created");
  return { address: getAddress(address) };
}

/** What a suite receives: the registry of the test that runs. */
export type GetFixture = () => RegistryFixture;

/** The logs of a transaction, in order, as the event's name, the contract that emitted it, and its arguments. */
export function decodeLogs(receipt: TransactionReceipt) {
  const logs = parseEventLogs({ abi: [...topicRegistryAbi, ...topicAbi], logs: receipt.logs });
  return logs.map(({ address, eventName, args }) => ({ address: getAddress(address), eventName, args }));
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
