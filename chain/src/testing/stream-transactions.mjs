// For tests that kill this process: sends transactions without end and prints each hash once its receipt is available.
import { startEmbeddedChain } from "@stele/chain";
import { privateKeyToAccount } from "viem/accounts";

const [file, privateKey, chainId] = process.argv.slice(2);
const account = privateKeyToAccount(privateKey);
const chain = await startEmbeddedChain({ file, chainId: Number(chainId), genesisAccounts: [account.address] });
const ask = (method, ...params) => chain.request({ method, params });

// Deploys a contract that logs its calldata under topic 0.
const DEPLOYMENT = "0x600d600c600039600d6000f33660006000376000366000a100";
let nonce = Number(await ask("eth_getTransactionCount", account.address, "latest"));
const fees = { type: "eip1559", chainId: Number(chainId), gas: 500_000n, maxFeePerGas: 7n, maxPriorityFeePerGas: 0n };

const waiting = [];
await ask("eth_subscribe", "newHeads");
chain.on("message", () => void report());

async function report() {
  for (const hash of waiting.splice(0)) {
    const receipt = await ask("eth_getTransactionReceipt", hash);
    if (receipt === null) waiting.push(hash);
    else process.stdout.write(`${hash}\n`);
  }
}

for (;;) {
  const data = nonce % 5 === 0 ? DEPLOYMENT : undefined;
  const to = data === undefined ? `0x${(nonce + 4096).toString(16).padStart(40, "0")}` : undefined;
  waiting.push(
    await ask("eth_sendRawTransaction", await account.signTransaction({ ...fees, nonce, to, data, value: 1n })),
  );
  nonce += 1;
  if (nonce % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
}
