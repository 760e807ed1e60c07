import { expect, test } from "vitest";
import { checkValues } from "./check-values.ts";
import { renderEffective } from "./render.ts";
import { text } from "./setting.ts";

const table = {
  token: text({
    section: "Any",
    description: "A secret.",
    default: "",
    rule: "six letters",
    check: (value) => /^[a-z]{6}$/.test(value),
    secret: true,
  }),
};

test("shows a secret neither in a problem nor in the printed settings", () => {
  const wrong = checkValues(table, new Map([["token", { value: "Hunter2", origin: "STELE_TOKEN" }]]));
  expect(wrong.problems).toEqual(["STELE_TOKEN: the value is not six letters"]);
  const right = checkValues(table, new Map([["token", { value: "hunter", origin: "STELE_TOKEN" }]]));
  expect(right.problems).toEqual([]);
  expect(renderEffective(table, right)).toBe("token = (secret)  (STELE_TOKEN)\n");
});
