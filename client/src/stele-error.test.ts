import { errorCatalogue } from "@stele/wire";
import { expect, test } from "vitest";
import { isRefusal, retryableCodes } from "./stele-error.ts";

test("retryableCodes equals the retryable codes of the catalogue", () => {
  const retryable = Object.values(errorCatalogue).filter(({ retry }) => retry);
  expect(retryableCodes).toEqual(new Set(retryable.map(({ code }) => code)));
});

test("isRefusal is true for a call over a quota, and false after an unknown error or without the database", () => {
  const { overQuota, unknown, storeUnreachable, topicNotExist } = errorCatalogue;
  expect([topicNotExist, overQuota, unknown, storeUnreachable].map(({ code }) => isRefusal(code))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
