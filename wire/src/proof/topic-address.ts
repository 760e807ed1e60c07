import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { findBytes, type Keccak256, portableKeccak256 } from "@stele/eth";

const addressBytes = 20;
const hashBytes = 32;
/** Creation code of an EIP-1167 proxy before and after the address of its implementation. */
const proxyHead = "0x3d602d80600a3d3981f3363d3d373d3d3d363d73";
const proxyTail = "0x5af43d82803e903d91602b57fd5bf3";
/** RLP of the list of an address and the nonce 1, before and after the address. */
const createdHead = "0xd694";
const createdTail = "0x01";
const create2Head = "0xff";

/**
 * The CREATE2 address (EIP-1014) that the registry gives to the topic `name`. The salt is the hash of the name; the code is a proxy of the
 * first contract that the registry created. No other contract can have that address.
 */
export function topicAddress(
  topic: { readonly registry: Uint8Array; readonly name: string },
  keccak: Keccak256 = portableKeccak256,
): Uint8Array {
  const { registry, name } = topic;
  if (registry.length !== addressBytes) throw new TypeError("the registry's address does not have 20 bytes");
  const implementation = around(createdHead, registry, createdTail);
  const proxyCode = around(proxyHead, keccak(implementation).subarray(hashBytes - addressBytes), proxyTail);
  const place = concatBytes(bytesOf(create2Head), registry, keccak(utf8ToBytes(name)), keccak(proxyCode));
  return keccak(place).slice(hashBytes - addressBytes);
}

function around(head: string, address: Uint8Array, tail: string): Uint8Array {
  return concatBytes(bytesOf(head), address, bytesOf(tail));
}

function bytesOf(text: string): Uint8Array {
  return findBytes(text) ?? new Uint8Array(0);
}
