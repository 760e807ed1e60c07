import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { errorCatalogue } from "../errors/catalogue.ts";
import { fillTables, tables } from "./testing/render-tables.ts";

const pathOf = (page: string) => fileURLToPath(new URL(`../../../docs/${page}`, import.meta.url));
const pages = { "errors.md": ["errors"], "rest.md": ["rest operations"], "jsonrpc.md": ["json-rpc operations"] };

// `npx vitest run --project unit wire/src/schemas/docs -u` updates the tables.
describe("reference pages", () => {
  it.each(Object.entries(pages))("docs/%s contains its tables as the code renders them", async (page, names) => {
    const text = readFileSync(pathOf(page), "utf8");
    for (const name of names) expect(text).toContain(`<!-- table: ${name} -->`);
    await expect(fillTables(text)).toMatchFileSnapshot(pathOf(page));
  });

  it("every table is on a page, and no error code occurs twice", () => {
    expect(Object.values(pages).flat().toSorted()).toEqual(Object.keys(tables).toSorted());
    const codes = Object.values(errorCatalogue).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
  });
});
