import { BrokerError } from "@stele/wire";
import { expect, test } from "vitest";
import { EndpointError } from "./endpoint-error.ts";
import { isRevert, toBrokerError, toFailureOf, toReadError, toRpcFailure } from "./rpc-failure.ts";

const rpcError = (code: number, message: string): Error => Object.assign(new Error(message), { code });

test.each([
  ["geth", rpcError(-32000, "already known"), "already-known"],
  ["nethermind", rpcError(-32010, "AlreadyKnown"), "already-known"],
  ["nethermind", rpcError(-32010, "InsufficientFunds, Account balance: 1, cumulative cost: 2"), "insufficient-funds"],
  ["nethermind", rpcError(-32010, "ReplacementNotAllowed"), "replacement-underpriced"],
  ["nethermind", rpcError(-32010, "NonceTooFarInFuture"), "nonce-too-high"],
  ["nethermind", rpcError(-32010, "nonce too far in future"), "nonce-too-high"],
  ["nethermind", rpcError(-32010, "NonceGap"), "nonce-too-high"],
  ["nethermind", rpcError(-32010, "OldNonce, Current nonce: 1, nonce of rejected tx: 0"), "nonce-too-low"],
  ["nethermind", rpcError(-32010, "FeeTooLowToCompete"), "underpriced"],
  ["nethermind", rpcError(-32010, "GasLimitExceeded, Gas limit: 1, gas limit of rejected tx: 2"), "too-large"],
  ["nethermind", rpcError(-32010, "gas limit reached, Gas limit: 1, gas limit of rejected tx: 2"), "too-large"],
  [
    "nethermind",
    rpcError(-32010, "Invalid, TxGasLimitCapExceeded: Gas limit 20000000 exceeded cap of 16777216."),
    "too-large",
  ],
  ["nethermind", rpcError(-32010, "MaxTxSizeExceeded"), "too-large"],
  ["besu", rpcError(-32000, "Known transaction"), "already-known"],
  ["besu", rpcError(-32000, "Transaction nonce is too distant from current sender nonce"), "nonce-too-high"],
  ["besu", rpcError(-32005, "Transaction gas limit exceeds block gas limit"), "too-large"],
  ["reth", rpcError(-32000, "transaction priority fee below minimum required priority fee 1000000000"), "underpriced"],
  ["anvil", rpcError(-32003, "transaction already imported"), "already-known"],
  ["anyone", rpcError(-32000, "unknown transaction type"), "refused"],
  ["erigon", rpcError(-32000, "INTERNAL_ERROR: existing tx with same hash"), "already-known"],
  ["erigon", rpcError(-32000, "INTERNAL_ERROR: could not replace existing tx"), "replacement-underpriced"],
  ["erigon", rpcError(-32000, "INTERNAL_ERROR: fee too low"), "underpriced"],
  ["erigon", rpcError(-32000, "INTERNAL_ERROR: IntrinsicGas"), "gas-too-low"],
  ["erigon", rpcError(-32000, "INTERNAL_ERROR: pending sub-pool is full"), "unreached"],
  ["fisco", rpcError(10004, "AlreadyInTxPool"), "already-known"],
  ["fisco", rpcError(10002, "TxPoolIsFull"), "unreached"],
  ["geth", rpcError(-32000, "nonce too low: next nonce 5, tx nonce 3"), "nonce-too-low"],
  ["besu", rpcError(-32001, "Nonce too low"), "nonce-too-low"],
  ["geth", rpcError(-32000, "replacement transaction underpriced"), "replacement-underpriced"],
  ["besu", rpcError(-32000, "Replacement transaction underpriced"), "replacement-underpriced"],
  ["geth", rpcError(-32000, "max fee per gas less than block base fee: address 0x1"), "underpriced"],
  ["geth", rpcError(-32000, "transaction underpriced: tip needed 1, tip permitted 0"), "underpriced"],
  ["geth", rpcError(-32000, "tx fee (1.25 ether) exceeds the configured cap (1.00 ether)"), "fee-capped"],
  ["reth", rpcError(-32003, "tx fee (25 wei) exceeds the configured cap (10 wei)"), "fee-capped"],
  ["besu", rpcError(-32000, "Transaction fee cap exceeded"), "fee-capped"],
  ["geth", rpcError(-32000, "insufficient funds for gas * price + value"), "insufficient-funds"],
  ["besu", rpcError(-32004, "Upfront cost exceeds account balance"), "insufficient-funds"],
  ["geth", rpcError(-32005, "query returned more than 10000 results"), "range-refused"],
  ["a gateway", rpcError(-32602, "query returned more than 10,000 results"), "range-refused"],
  ["a gateway", rpcError(-32602, "eth_getLogs range is limited to 10000 blocks"), "range-refused"],
  ["besu", rpcError(-32000, "Requested range exceeds maximum range limit"), "range-refused"],
  ["a gateway", rpcError(-32602, "Log response size exceeded."), "range-refused"],
  ["stele", rpcError(-32003, "response too large"), "range-refused"],
  ["quicknode", rpcError(-32614, "eth_getLogs is limited to a 10,000 range"), "range-refused"],
  ["1rpc", rpcError(-32602, "eth_getLogs is limited to 0 - 10000 blocks range"), "range-refused"],
  ["drpc", rpcError(35, "ranges over 10000 blocks are not supported on freetier"), "range-refused"],
  ["coinbase", rpcError(-32602, "please limit the query to at most 1,000 blocks"), "range-refused"],
  ["thirdweb", rpcError(-32602, "Maximum allowed number of requested blocks is 1000"), "range-refused"],
  ["llamarpc", rpcError(-32602, "query exceeds max results 20000"), "range-refused"],
  ["harmony", rpcError(-32000, "query must be smaller than size 1024"), "range-refused"],
  ["ankr", rpcError(-32000, "maximum [from, to] blocks distance: 1000"), "range-refused"],
  ["cloudflare", rpcError(-32047, "Invalid eth_getLogs request. Max range: 800"), "range-refused"],
  ["stele", rpcError(-32005, "limit exceeded: too many calls of the chain are waiting, try later"), "unreached"],
  ["stele", rpcError(-32005, "limit exceeded: more than 1024 requests are waiting, try later"), "unreached"],
  ["anyone", rpcError(-32601, "the method eth_subscribe does not exist/is not available"), "unsupported"],
  ["anyone", rpcError(3, "execution reverted"), "refused"],
  ["an endpoint", new EndpointError("http://a: connection refused", { reach: "unreached" }), "unreached"],
  ["an endpoint", new EndpointError("http://a: no answer", { reach: "unknown" }), "connection"],
  ["an endpoint", new EndpointError("http://a: too long an answer", { reach: "answer-too-long" }), "range-refused"],
  ["infura", rpcError(-32005, "daily request count exceeded, request rate limited"), "unreached"],
  ["infura", rpcError(-32005, "project ID request rate exceeded"), "unreached"],
  ["chainstack", rpcError(-32005, "You've exceeded the RPS limit available on the current plan."), "unreached"],
  ["quicknode", rpcError(-32007, "30/second request limit reached - reduce calls per second"), "unreached"],
  ["alchemy", rpcError(429, "Your app has exceeded its compute units per second capacity."), "unreached"],
  ["EIP-1193", rpcError(4900, "The embedded chain was stopped."), "connection"],
  ["code that throws a string", "text", "connection"],
  ["code that throws undefined", undefined, "connection"],
] as const)("classifies an error of %s: %s", (_, error, kind) => {
  expect(toRpcFailure(error).kind).toBe(kind);
});

test("returns a code of the catalogue to the caller, without the endpoint's message", () => {
  const lost = toBrokerError(new TypeError("fetch failed: http://secret@host"));
  expect(lost).toMatchObject({ code: 200205 });
  expect(lost.message).not.toContain("secret");
  expect(toBrokerError(rpcError(-32000, "insufficient funds"))).toMatchObject({ code: 200202 });
  expect(toBrokerError(rpcError(-32000, "max fee per gas less than block base fee")).hints).toEqual([
    expect.stringContaining("check the group's fees"),
  ]);
  const known = new BrokerError("topicNotExist");
  expect(toBrokerError(known)).toBe(known);
});

test("answers 200205 with the endpoint's message if a read is refused, and 200000 without the message of any other error", () => {
  const refused = toReadError(toRpcFailure(rpcError(-32000, "missing trie node")));
  expect(refused).toMatchObject({ code: 200205, message: expect.stringContaining("missing trie node") });
  const fault = toReadError(new TypeError("cannot read x of undefined"));
  expect(fault).toMatchObject({ code: 200000, message: "unknown error" });
});

test("shortens a message of 10,000 characters to fewer than 400", () => {
  expect(toRpcFailure(rpcError(-32000, "x".repeat(10_000))).message.length).toBeLessThan(400);
});

test.each([
  [-32603, "Internal error", "connection"],
  [0, "an error without a message", "connection"],
  [-32000, "INTERNAL_ERROR: nonce too low", "nonce-too-low"],
  [-32000, "invalid sender", "refused"],
  [-32005, "limit exceeded", "limit-exceeded"],
  [-32005, "daily quota used up", "limit-exceeded"],
  [-32000, "query timeout exceeded", "connection"],
])("classifies the error %i of a sent transaction, '%s', as %s", (code, message, kind) => {
  expect(toFailureOf("eth_sendRawTransaction", rpcError(code, message)).kind).toBe(kind);
});

test.each([
  ["execution reverted", true],
  ["invalid opcode: INVALID", true],
  ["EVM error: OutOfGas(Basic)", true],
  ["EVM error StackUnderflow", true],
  ["EVM error: StackOverflow", true],
  ["EVM error OpcodeNotFound", true],
  ["EVM error InvalidFEOpcode", true],
  ["EVM error: InvalidJump", true],
  ["missing trie node", false],
  ["header not found", false],
])("for the error '%s' of a call, isRevert returns %s", (message, isByContract) => {
  expect(isRevert(toRpcFailure(rpcError(-32000, message)))).toBe(isByContract);
});
