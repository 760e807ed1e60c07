import { keccak256, numberToHex, parseSignature, toHex } from "viem";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BlockAnswer } from "../testing/answers.ts";
import { BACKENDS } from "../testing/backends.ts";
import { CHAIN_ID, PAUPER, sendAndWait, SIGNER } from "../testing/client.ts";
import { yardstickAbi } from "../testing/yardstick.generated.ts";
import { encodeCall, GAS, PLAIN_TOPIC, Yardstick } from "../testing/yardstick.ts";

describe.each(BACKENDS)("execution: $name", ({ start }) => {
  let yardstick: Yardstick;

  beforeAll(async () => {
    yardstick = await Yardstick.create(await start());
  });
  afterAll(() => yardstick.stop());

  it("the chain deploys at the address that follows from sender and nonce", async () => {
    expect(yardstick.contract).toBe("0x5fbdb2315678afecb367f032d93f642f64180aa3");
    expect((await yardstick.result("eth_getCode", yardstick.contract, "latest")).length).toBeGreaterThan(1_000);
    expect(await yardstick.result("eth_getCode", PAUPER.address, "latest")).toBe("0x");
  });

  it("the chain transfers value", async () => {
    const before = BigInt(
      await yardstick.result("eth_getBalance", "0x00000000000000000000000000000000000000aa", "latest"),
    );
    await yardstick.send({ functionName: "pay", args: ["0x00000000000000000000000000000000000000aa"] }, 12n);
    expect(
      BigInt(await yardstick.result("eth_getBalance", "0x00000000000000000000000000000000000000aa", "latest")),
    ).toBe(before + 12n);
  });

  it("the chain runs calls of functions and precompiles", async () => {
    const { reader } = yardstick.client;
    const target = { address: yardstick.contract, abi: yardstickAbi } as const;
    expect(await reader.readContract({ ...target, functionName: "values", args: [5n] })).toBe(1234n);
    const [number, chainId, , sender, gasLimit] = await reader.readContract({
      ...target,
      functionName: "context",
      account: PAUPER.address,
    });
    expect(chainId).toBe(BigInt(CHAIN_ID));
    expect(sender).toBe(PAUPER.address);
    expect(gasLimit).toBe(
      BigInt((await yardstick.resultAs<BlockAnswer>("eth_getBlockByNumber", "latest", false)).gasLimit),
    );
    expect(number).toBeGreaterThan(0n);
    const digest = keccak256("0x01");
    const signature = await SIGNER.sign({ hash: digest });
    const { r, s, v } = parseSignature(signature);
    expect(await reader.readContract({ ...target, functionName: "recover", args: [digest, Number(v), r, s] })).toBe(
      SIGNER.address,
    );
    expect(await reader.readContract({ ...target, functionName: "recover", args: [digest, 1, r, s] })).toBe(
      "0x0000000000000000000000000000000000000000",
    );
    const [keccak, sha256, ripemd, same] = await reader.readContract({
      ...target,
      functionName: "digests",
      args: ["0x616263"],
    });
    expect(keccak).toBe(keccak256("0x616263"));
    expect(sha256).toBe("0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(ripemd).toBe("0x8eb208f7e05d987a9b044a8e98c6b087f15a0bfc");
    expect(same).toBe("0x616263");
    expect(await yardstick.result("eth_call", { to: PAUPER.address, data: "0x1234" }, "latest")).toBe("0x");
  });

  it("the chain runs calls with state overrides and on an earlier state", async () => {
    const data = encodeCall({ functionName: "values", args: [77n] });
    await yardstick.send({ functionName: "store", args: [77n, 1n, "0x"] });
    const block = await yardstick.result("eth_blockNumber");
    await yardstick.send({ functionName: "store", args: [77n, 2n, "0x"] });
    expect(BigInt(await yardstick.result("eth_call", { to: yardstick.contract, data }, "latest"))).toBe(2n);
    expect(BigInt(await yardstick.result("eth_call", { to: yardstick.contract, data }, block))).toBe(1n);
    const code = "0x602a60005260206000f3"; // returns 42
    expect(
      BigInt(
        await yardstick.result("eth_call", { to: PAUPER.address, data: "0x" }, "latest", {
          [PAUPER.address]: { code },
        }),
      ),
    ).toBe(42n);
    const slot = numberToHex(1, { size: 32 });
    const override = { [yardstick.contract]: { stateDiff: { [slot]: numberToHex(99, { size: 32 }) } } };
    const count = encodeCall({ functionName: "count" });
    expect(
      BigInt(await yardstick.result("eth_call", { to: yardstick.contract, data: count }, "latest", override)),
    ).toBe(99n);
  });

  it("the chain counts a field that is null as left out", async () => {
    const data = encodeCall({ functionName: "count" });
    const others = { from: null, input: null, gas: null, gasPrice: null, value: null, nonce: null, accessList: null };
    const call = { to: yardstick.contract, data, ...others };
    const overrides = { [PAUPER.address]: { nonce: null, balance: null, code: null, stateDiff: null } };
    const count = await yardstick.result("eth_call", { to: yardstick.contract, data });
    expect(await yardstick.result("eth_call", call, null, overrides)).toBe(count);
    const open = { fromBlock: null, toBlock: null, blockHash: null, address: null, topics: null };
    const logs = await yardstick.result("eth_getLogs", {});
    expect(await yardstick.result("eth_getLogs", open)).toEqual(logs);
    const { length } = await yardstick.resultAs<readonly unknown[]>("eth_getLogs", { ...open, fromBlock: "0x0" });
    expect(length).toBeGreaterThan(logs.length);
  });

  it.each([
    ["failWithReason", /execution reverted: it is not allowed/],
    ["failWithError", /execution reverted/],
    ["failWithPanic", /execution reverted/],
    ["failSilently", /execution reverted/],
  ] as const)("the chain answers %s with code 3 and the revert data", async (functionName, words) => {
    const call = { from: SIGNER.address, to: yardstick.contract, data: encodeCall({ functionName }) };
    for (const method of ["eth_call", "eth_estimateGas"]) {
      const refusal = await yardstick.error(method, call);
      expect(refusal).toMatchObject({ code: 3, message: expect.stringMatching(words) });
      expect(refusal?.data).toMatch(functionName === "failSilently" ? /^0x$/ : /^0x[0-9a-f]{8,}$/);
    }
  });

  it("the chain estimates gas that is enough and not much more", async () => {
    const { reader } = yardstick.client;
    const call = {
      account: SIGNER.address,
      to: yardstick.contract,
      data: encodeCall({ functionName: "store", args: [901n, 1n, "0x01"] }),
    };
    const estimate = await reader.estimateGas(call);
    const receipt = await sendAndWait(yardstick.client, { to: yardstick.contract, data: call.data, gas: estimate });
    expect(receipt.status).toBe("success");
    expect(Number(estimate)).toBeLessThan(Number(receipt.gasUsed) * 1.05);
    expect(await reader.estimateGas({ account: SIGNER.address, to: PAUPER.address, value: 1n })).toBe(21_000n);
    const nested = {
      account: SIGNER.address,
      to: yardstick.contract,
      data: encodeCall({ functionName: "deploy", args: [toHex(1, { size: 32 })] }),
    };
    const limit = await reader.estimateGas(nested);
    expect(
      (await sendAndWait(yardstick.client, { to: yardstick.contract, data: nested.data, gas: limit })).status,
    ).toBe("success");
  });

  it("the chain includes transactions that revert, run out of gas, or revert partly", async () => {
    const reverted = await yardstick.send({ functionName: "failWithReason" });
    expect(reverted).toMatchObject({ status: "reverted", logs: [], contractAddress: null, gasUsed: 21_388n });
    const burned = await sendAndWait(yardstick.client, {
      to: yardstick.contract,
      data: encodeCall({ functionName: "burn" }),
      gas: 60_000n,
    });
    expect(burned).toMatchObject({ status: "reverted", gasUsed: 60_000n });
    const partly = await yardstick.send({ functionName: "tryFailing" });
    expect(partly.status).toBe("success");
    expect(partly.logs.map((log) => [log.topics[0], BigInt(log.data)])).toEqual([[PLAIN_TOPIC, 99n]]);
    expect(
      await yardstick.result(
        "eth_call",
        { to: yardstick.contract, data: encodeCall({ functionName: "values", args: [1_000n] }) },
        "latest",
      ),
    ).toBe(numberToHex(0, { size: 32 }));
  });

  it("the chain uses the expected gas for creation, destruction and refunds", async () => {
    const gas: bigint[] = [];
    gas.push((await yardstick.send({ functionName: "deploy", args: [toHex(2, { size: 32 })] })).gasUsed);
    gas.push((await yardstick.send({ functionName: "deployAndKill", args: [toHex(3, { size: 32 })] })).gasUsed);
    gas.push((await yardstick.send({ functionName: "deployAndKill", args: [toHex(3, { size: 32 })] })).gasUsed);
    gas.push((await yardstick.send({ functionName: "store", args: [300n, 1n, "0x"] })).gasUsed);
    gas.push((await yardstick.send({ functionName: "store", args: [300n, 0n, "0x"] })).gasUsed);
    gas.push((await yardstick.send({ functionName: "emitMany", args: [20n] })).gasUsed);
    expect(gas).toMatchInlineSnapshot(`
      [
        93550n,
        98909n,
        98909n,
        51620n,
        29708n,
        43456n,
      ]
    `);
  });

  it("the chain accepts legacy and access list transactions", async () => {
    const data = encodeCall({ functionName: "store", args: [400n, 1n, "0x"] });
    const common = { chainId: CHAIN_ID, to: yardstick.contract, data, gas: GAS, gasPrice: 8n };
    const legacy = await SIGNER.signTransaction({ ...common, type: "legacy", nonce: await yardstick.nextNonce() });
    const legacyHash = await yardstick.result("eth_sendRawTransaction", legacy);
    expect(legacyHash).toBe(keccak256(legacy));
    const first = await yardstick.client.reader.waitForTransactionReceipt({
      hash: legacyHash,
      checkReplacement: false,
    });
    expect(first).toMatchObject({ status: "success", type: "legacy", effectiveGasPrice: 8n });
    const accessList = [{ address: yardstick.contract, storageKeys: [numberToHex(1, { size: 32 })] }];
    const listed = await SIGNER.signTransaction({
      ...common,
      type: "eip2930",
      nonce: await yardstick.nextNonce(),
      accessList,
    });
    const second = await yardstick.client.reader.waitForTransactionReceipt({
      hash: await yardstick.result("eth_sendRawTransaction", listed),
      checkReplacement: false,
    });
    expect(second).toMatchObject({ status: "success", type: "eip2930", effectiveGasPrice: 8n });
    expect(await yardstick.result("eth_getTransactionByHash", second.transactionHash)).toMatchObject({
      type: "0x1",
      accessList: [{ address: yardstick.contract, storageKeys: accessList[0]?.storageKeys }],
    });
    expect([first.gasUsed, second.gasUsed]).toMatchInlineSnapshot(`
      [
        51620n,
        34020n,
      ]
    `);
  });
});
