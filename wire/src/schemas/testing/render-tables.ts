import { errorCatalogue } from "../../errors/catalogue.ts";
import { listProperties, toJsonSchema } from "../json-schema.ts";
import { type Operation, type OperationName, operationNames, operations, restPathOf } from "../operations.ts";

/** Renders the tables of the reference pages, by name. A comment with that name marks the table's place in a page. */
export const tables: Readonly<Record<string, () => string>> = {
  errors: renderErrors,
  "rest operations": () =>
    renderOperations({
      titleOf: toRestTitle,
      paramsOf: (operation) => operation.restParams,
      resultOf: describeRestResult,
    }),
  "json-rpc operations": () =>
    renderOperations({
      titleOf: (name) => name,
      paramsOf: (operation) => operation.params,
      resultOf: describeRpcResult,
    }),
};

/** Returns the page with each marked table rendered again. @throws Error if a mark names no table. */
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

interface Rendering {
  readonly titleOf: (name: OperationName) => string;
  readonly paramsOf: (operation: Operation) => Operation["params"];
  readonly resultOf: (operation: Operation) => string;
}

function renderOperations(rendering: Rendering): string {
  return operationNames.map((name) => renderOperation(name, rendering)).join("\n\n");
}

function renderOperation(name: OperationName, { titleOf, paramsOf, resultOf }: Rendering): string {
  const operation: Operation = operations[name];
  const rows = listProperties(paramsOf(operation)).map((property) => [
    `\`${property.name}\``,
    property.isRequired ? "yes" : "no",
    property.description,
  ]);
  const codes = operation.errors.map((error) => errorCatalogue[error].code).toSorted((left, right) => left - right);
  const table = renderTable(["Parameter", "Required", ""], rows);
  return `### ${titleOf(name)}\n\n${operation.summary}\n\n${table}\n\nResult: ${resultOf(operation)}. Errors: ${codes.join(", ")}.`;
}

/** The last segment of the operation's REST path. */
function toRestTitle(name: OperationName): string {
  return restPathOf(name).replace(/^.*\//, "");
}

function describeRestResult(operation: Operation): string {
  const { title, type } = toJsonSchema(operation.result);
  return typeof title === "string" ? title : String(type);
}

function describeRpcResult(operation: Operation): string {
  const result = describeRestResult(operation);
  return result === "boolean" ? 'the string "true" or "false"' : result;
}

function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [renderRow(head), `|${"---|".repeat(head.length)}`, ...rows.map(renderRow)].join("\n");
}

function renderRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
