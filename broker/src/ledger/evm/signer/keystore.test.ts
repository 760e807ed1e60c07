import { Signer, toHex } from "@stele/eth/node";
import { describe, expect, it } from "vitest";
import { openKeystore } from "./keystore.ts";

const password = "testpassword";
const source = "key.json";
const secret = "0x7a28b5ba57c53603b0b07b56bba752f7784bf506fa95edc395f5cf6c7514fe9d";

// The examples of the Web3 Secret Storage Definition.
const withPbkdf2 = {
  crypto: {
    cipher: "aes-128-ctr",
    cipherparams: { iv: "6087dab2f9fdbbfaddc31a909735c1e6" },
    ciphertext: "5318b4d5bcd28de64ee5559e671353e16f075ecae9f99c7a79a38af5f869aa46",
    kdf: "pbkdf2",
    kdfparams: {
      c: 262_144,
      dklen: 32,
      prf: "hmac-sha256",
      salt: "ae3cd4e7013836a3df6bd7241b12db061dbe2c6785853cce422d148a624ce0bd",
    },
    mac: "517ead924a9d0dc3124507e3393d175ce3ff7c1e96529c6c555ce9e51205e9b2",
  },
  id: "3198bc9c-6672-5ab3-d995-4942343ae5b6",
  version: 3,
};
const withScrypt = {
  crypto: {
    cipher: "aes-128-ctr",
    cipherparams: { iv: "83dbcc02d8ccb40e466191a123791e0e" },
    ciphertext: "d172bf743a674da9cdad04534d56926ef8358534d458fffccd4e6ad2fbde479c",
    kdf: "scrypt",
    kdfparams: {
      dklen: 32,
      n: 262_144,
      r: 1,
      p: 8,
      salt: "ab0c7876052600dd703518d6fc3fe8984592145b591fc8fb5c6d43190334ba19",
    },
    mac: "2103ac29920d71da29f15d75b4a16dbe95cfd7ff8faea1056c33131d846e3097",
  },
  id: "3198bc9c-6672-5ab3-d995-4942343ae5b6",
  version: 3,
};

// From the test data of go-ethereum.
const withGethsScrypt = {
  address: "7ef5a6135f1fd6a02593eedc869c6d41d934aef8",
  crypto: {
    cipher: "aes-128-ctr",
    ciphertext: "1d0839166e7a15b9c1333fc865d69858b22df26815ccf601b28219b6192974e1",
    cipherparams: { iv: "8df6caa7ff1b00c4e871f002cb7921ed" },
    kdf: "scrypt",
    kdfparams: {
      dklen: 32,
      n: 8,
      p: 16,
      r: 8,
      salt: "e5e6ef3f4ea695f496b643ebd3f75c0aa58ef4070e90c80c5d3fb0241bf1595c",
    },
    mac: "6d16dfde774845e4585357f24bce530528bc69f4f84e1e22880d34fa45c273e5",
  },
  id: "950077c7-71e3-4c44-a4a1-143919141ed4",
  version: 3,
};

describe("a keystore of version 3", () => {
  it.each([
    ["pbkdf2", withPbkdf2],
    ["scrypt", withScrypt],
    ["the spelling of the first clients", { version: 3, Crypto: withPbkdf2.crypto }],
  ])("opens a keystore with %s with its password", async (_, keystore) => {
    expect(toHex(await openKeystore(JSON.stringify(keystore), { password, source }))).toBe(secret);
  });

  it("returns the key of its address for a keystore of geth", async () => {
    const key = await openKeystore(JSON.stringify(withGethsScrypt), { password: "foobar", source });
    expect(new Signer(key).address).toBe(`0x${withGethsScrypt.address}`);
  });

  it.each([
    ["another password", withPbkdf2, "wrong password", /^The password does not open the keystore key\.json\.$/],
    [
      "a changed ciphertext",
      { ...withPbkdf2, crypto: { ...withPbkdf2.crypto, ciphertext: "00".repeat(32) } },
      password,
      /^The password does not open/,
    ],
    ["another version", { ...withPbkdf2, version: 1 }, password, /^key\.json is not a keystore that can be read/],
    [
      "a cost of scrypt that is not a power of two",
      { ...withScrypt, crypto: { ...withScrypt.crypto, kdfparams: { ...withScrypt.crypto.kdfparams, n: 12 } } },
      password,
      /^key\.json is not a keystore that can be read/,
    ],
    [
      "an initialization vector of 15 bytes",
      { ...withPbkdf2, crypto: { ...withPbkdf2.crypto, cipherparams: { iv: "00".repeat(15) } } },
      password,
      /^key\.json is not a keystore that can be read/,
    ],
    [
      "a key derivation that needs more than 1 GiB",
      { ...withScrypt, crypto: { ...withScrypt.crypto, kdfparams: { ...withScrypt.crypto.kdfparams, n: 2 ** 30 } } },
      password,
      /asks for more than \d+ bytes of memory/,
    ],
  ] as const)("refuses %s", async (...[, keystore, given, message]) => {
    await expect(openKeystore(JSON.stringify(keystore), { password: given, source })).rejects.toThrow(message);
  });

  it("refuses text that is not JSON, and shows no part of it", async () => {
    await expect(openKeystore(secret, { password, source })).rejects.toThrow(
      /^key\.json is not a keystore that can be read: JSON of version 3/,
    );
  });
});
