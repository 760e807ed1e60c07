import { errorCatalogue } from "@stele/wire";
import { expect, test } from "vitest";
import { retryableCodes } from "./stele-error.ts";

test("retryableCodes equals the retryable codes of the catalogue", () => {
  const retryable = Object.values(errorCatalogue).filter(({ retry }) => retry);
  expect(retryableCodes).toEqual(new Set(retryable.map(({ code }) => code)));
});
