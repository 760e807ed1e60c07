import { errorCatalogue } from "@stele/wire";
import { expect, test } from "vitest";
import { retryableCodes } from "./stele-error.ts";

test("the retryable codes are those of the catalogue", () => {
  const retryable = Object.values(errorCatalogue).filter(({ retry }) => retry);
  expect(retryableCodes).toEqual(new Set(retryable.map(({ code }) => code)));
});
