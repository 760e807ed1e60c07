import { expect, it } from "vitest";
import { type StoreFault, StoreError } from "../store-error.ts";
import { answering } from "./answering.ts";

const failing = (fault: StoreFault) =>
  answering({ read: async () => Promise.reject(new StoreError(fault, `database events at db.internal: ${fault}`)) });

it.each<[StoreFault, string]>([
  ["unavailable", "the broker's database cannot be reached"],
  ["full", "the broker's database cannot be reached: its disk is full"],
  ["io", "the broker's database cannot be reached: it cannot read or write its disk"],
  ["read-only", "the broker's database cannot be reached: it is read-only"],
])(
  "answers 200207 for the fault %s, and says what is wrong with the server without naming it",
  async (fault, message) => {
    await expect(failing(fault).read()).rejects.toMatchObject({ code: 200_207, message });
  },
);
