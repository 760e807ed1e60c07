import { createRequire } from "node:module";
import { keccak256, toHex, toQuantity } from "@stele/eth/node";
import type { ReadContext, RpcMethods } from "./context.ts";

// Both src/rpc and dist/rpc are two folders below package.json, which has a version.
const { version } = createRequire(import.meta.url)("../../package.json") as { version: string };

export const nodeMethods: RpcMethods<ReadContext> = {
  eth_chainId: ({ chain }) => toQuantity(chain.options.chainId),
  net_version: ({ chain }) => String(chain.options.chainId),
  net_listening: () => true,
  net_peerCount: () => "0x0",
  web3_clientVersion: () => `Stele/v${version}/${process.platform}-${process.arch}/node${process.versions.node}`,
  web3_sha3: (_context, params) => toHex(keccak256(params.data(0))),
  eth_syncing: () => false,
  eth_accounts: () => [],
  eth_coinbase: () => "0x0000000000000000000000000000000000000000",
  eth_mining: () => false,
};
