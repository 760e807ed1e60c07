import createKeccak from "keccak/bindings.js";
import secp256k1 from "secp256k1/bindings.js";
import { encodeBytes, encodeInteger, encodeList } from "./rlp.mjs";

const dynamicFeeType = Buffer.from([2]);
const none = encodeBytes(Buffer.alloc(0));
const emptyList = encodeList([]);

/** Signs transactions of one key that differ in nonce and data only; whatever is the same is encoded once. */
export class TransactionSigner {
  #privateKey;
  #chainId;
  #priorityFee;
  #maxFee;
  #gas;
  #to;

  /** @param {{ readonly privateKey: Buffer, readonly chainId: number, readonly priorityFee: bigint, readonly maxFee: bigint, readonly gas: number, readonly to?: Buffer }} options without `to` a contract is made */
  constructor({ privateKey, chainId, priorityFee, maxFee, gas, to = Buffer.alloc(0) }) {
    this.#privateKey = privateKey;
    this.#chainId = encodeInteger(chainId);
    this.#priorityFee = encodeInteger(priorityFee);
    this.#maxFee = encodeInteger(maxFee);
    this.#gas = encodeInteger(gas);
    this.#to = encodeBytes(to);
    const publicKey = secp256k1.publicKeyCreate(privateKey, false);
    this.address = `0x${keccak256(Buffer.from(publicKey.subarray(1)))
      .subarray(12)
      .toString("hex")}`;
  }

  /** The signed transaction (EIP-1559) as the wire has it. @param {number} nonce @param {Buffer} data */
  sign(nonce, data) {
    const items = [
      this.#chainId,
      encodeInteger(nonce),
      this.#priorityFee,
      this.#maxFee,
      this.#gas,
      this.#to,
      none,
      encodeBytes(data),
      emptyList,
    ];
    const hash = keccak256(Buffer.concat([dynamicFeeType, encodeList(items)]));
    const { signature, recid } = secp256k1.ecdsaSign(hash, this.#privateKey);
    const parts = [encodeInteger(recid), toScalar(signature.subarray(0, 32)), toScalar(signature.subarray(32))];
    return Buffer.concat([dynamicFeeType, encodeList([...items, ...parts])]);
  }
}

/** An integer of 32 bytes without its leading zeros. */
function toScalar(bytes) {
  const start = bytes.findIndex((byte) => byte !== 0);
  return encodeBytes(Buffer.from(bytes.subarray(start)));
}

function keccak256(bytes) {
  return createKeccak("keccak256").update(bytes).digest();
}
