import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { createSystemClock } from "../../../lib/system/clock.ts";
import { type Anvil, startAnvil } from "../testing/anvil.ts";
import { EndpointSet } from "./endpoint-set.ts";

let folder: string;
let anvil: Anvil;
const mine = { method: "evm_mine", params: [] };

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "stele-anvil-"));
  anvil = await startAnvil(["--ipc", join(folder, "anvil.ipc")]);
});
afterAll(async () => {
  await anvil.stop();
  rmSync(folder, { recursive: true });
});

describe.each([
  ["http", () => anvil.url],
  ["ws", () => anvil.url.replace("http", "ws")],
  ["ipc", () => `ipc:${join(folder, "anvil.ipc")}`],
])("anvil by %s", (scheme, address) => {
  it("returns the chain node's answers and errors, and announces new heads except over HTTP", async () => {
    const set = new EndpointSet({
      addresses: [address()],
      clock: createSystemClock(),
      logger: silentLogger,
    });
    try {
      expect(await set.request({ method: "eth_chainId" })).toBe("0x7a69");
      const many = Array.from({ length: 50 }, () =>
        set.request({ method: "eth_getBlockByNumber", params: ["0x0", true] }),
      );
      expect(await Promise.all(many)).toHaveLength(50);
      await expect(set.request({ method: "eth_nothing" })).rejects.toMatchObject({ name: "RpcAnswerError" });
      if (scheme === "http") return;
      const heads: unknown[] = [];
      await set.subscribeHeads?.((head) => heads.push(head));
      await set.request(mine);
      await vi.waitFor(() => expect(heads).toMatchObject([{ number: expect.stringMatching(/^0x/) }]), {
        timeout: 20_000,
      });
    } finally {
      await set.close();
    }
  });
});
