import { errorCatalogue } from "../../errors/catalogue.ts";
import { listProperties, toJsonSchema } from "../json-schema.ts";
import { type Operation, operationNames, operations } from "../operations.ts";

/** Tables of the reference pages, by the name that marks their place in a page. */
export const tables: Readonly<Record<string, () => string>> = {
  errors: renderErrors,
  "rest operations": () => renderOperations((operation) => operation.restParams, toRestResult),
  "json-rpc operations": () => renderOperations((operation) => operation.params, toRpcResult),
};

/** A page with each marked table as it is rendered now. @throws when a mark names no table. */
export function fillTables(page: string): string {
  return page.replaceAll(/<!-- table: (.+?) -->\n.*?<!-- end -->/gs, (_whole, name: string) => {
    const render = tables[name];
    if (render === undefined) throw new Error(`no table is called ${name}`);
    return `<!-- table: ${name} -->\n${render()}\n<!-- end -->`;
  });
}

function renderErrors(): string {
  const rows = Object.entries(errorCatalogue).map(([name, { code, kind, message, retry }]) => [
    String(code),
    name,
    message,
    kind,
    retry ? "yes" : "no",
  ]);
  return renderTable(["Code", "Name", "Message", "Kind", "Retry can help"], rows);
}

type ParamsOf = (operation: Operation) => Operation["params"];

function renderOperations(paramsOf: ParamsOf, resultOf: (operation: Operation) => string): string {
  return operationNames.map((name) => renderOperation(name, paramsOf(operations[name]), resultOf)).join("\n\n");
}

function renderOperation(
  name: (typeof operationNames)[number],
  params: Operation["params"],
  resultOf: (operation: Operation) => string,
): string {
  const operation: Operation = operations[name];
  const rows = listProperties(params).map((property) => [
    `\`${property.name}\``,
    property.isRequired ? "yes" : "no",
    property.description,
  ]);
  const codes = operation.errors.map((error) => errorCatalogue[error].code).toSorted((left, right) => left - right);
  const table = renderTable(["Parameter", "Required", ""], rows);
  return `### ${name}\n\n${operation.summary}\n\n${table}\n\nResult: ${resultOf(operation)}. Errors: ${codes.join(", ")}.`;
}

function toRestResult(operation: Operation): string {
  const { title, type } = toJsonSchema(operation.result);
  return typeof title === "string" ? title : String(type);
}

function toRpcResult(operation: Operation): string {
  const result = toRestResult(operation);
  return result === "boolean" ? 'the string "true" or "false"' : result;
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [renderRow(head), `|${"---|".repeat(head.length)}`, ...rows.map(renderRow)].join("\n");
}

function renderRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
