import {
  type AdminOperation,
  type AdminOperationName,
  adminOperations,
  adminPath,
  quote,
  toAdminOpenApi,
} from "@stele/wire";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type * as z from "zod";
import type { Logger } from "../../../lib/logger.ts";
import { once } from "../../../lib/once.ts";
import { ConnectionCallers } from "../../callers/connection-callers.ts";
import { toPath } from "../../shared/base-path.ts";
import { BodyRefused, BodyTooLong, type RawBody } from "../../shared/collect-body.ts";
import { findEncodingRefusal, parseContentType } from "../../shared/content-type.ts";
import { parseJson } from "../../shared/decode-text.ts";
import { parameterError } from "../../shared/failure.ts";
import { findQuery } from "../../shared/find-query.ts";
import { fromFramework } from "../../shared/from-framework.ts";
import { measureJson, repeatsName } from "../../shared/json-shape.ts";
import type { Expense, OperationRunner } from "../../shared/run-operation.ts";
import { jsonType } from "../../shared/send-failure.ts";
import { type AdminBrokers, type AdminCall, adminHandlers } from "./handlers.ts";
import { sendProblem } from "./problem.ts";

export interface AdminApiOptions extends Omit<AdminBrokers, "document"> {
  readonly logger: Logger;
  readonly version: string;
  readonly basePath: string;
  readonly runner: OperationRunner;
}

/**
 * Operations that wait for receivers, unless they are dry runs. A change to a new url waits too, even a dry run: the broker looks up the host and
 * asks the receiver for consent.
 */
const callsReceivers: ReadonlySet<AdminOperationName> = new Set([
  "testSubscription",
  "testSubscriptions",
  "redeliverSubscription",
  "redeliverSubscriptions",
]);

/** Operations that need no turn: this node answers them from memory, or with few short reads of the store, coordinator and chain. */
const cheap: ReadonlySet<AdminOperationName> = new Set([
  "getOpenApi",
  "listFigures",
  "listGroups",
  "listNodes",
  "listRoles",
  "getRole",
]);

/** The admin API: JSON, with real HTTP statuses. Every route is in the table of operations. */
export function registerAdminApi(app: FastifyInstance, options: AdminApiOptions): void {
  app.register(
    (scope, _options, done) => {
      registerRoutes(scope, options);
      done();
    },
    { prefix: adminPath },
  );
}

function registerRoutes(app: FastifyInstance, options: AdminApiOptions): void {
  const { logger, runner } = options;
  const parts = { ...options, document: once(() => toAdminOpenApi(options)) };
  const callers = new ConnectionCallers("admin");
  app.setErrorHandler((error, _request, reply) =>
    sendProblem(reply, fromFramework(error), { logger, operation: "admin" }),
  );
  for (const [name, operation] of operationEntries()) {
    app.route({
      method: operation.method,
      url: operation.path.replaceAll(/\{(\w+)\}/g, ":$1"),
      exposeHeadRoute: false,
      handler: async (request, reply) => {
        try {
          const call = { ...parts, caller: callers.ofRequest(request), ...readCall(request, operation) };
          const answer = async (): Promise<string> => JSON.stringify(await adminHandlers[name](call));
          const json = cheap.has(name) ? await answer() : await runner.runInTurn(expenseOf(name, call), call, answer);
          return reply.header("content-type", jsonType).send(json);
        } catch (error) {
          return sendProblem(reply, error, { logger, operation: name });
        }
      },
    });
  }
  app.all("/*", (request, reply) => {
    const failure = parameterError(`there is nothing at ${request.method} ${quote(toPath(request.raw.url ?? ""))}`);
    return sendProblem(reply, failure, { logger, operation: "admin", status: 404 });
  });
}

/** The limit that an expensive call counts against. Calls of the other interfaces count against the same limits. */
function expenseOf(name: AdminOperationName, { query, body }: CallValues): Expense {
  if (name === "getEvent") return query.proof === true ? "proof" : "read";
  if (body.url !== undefined) return "receiver";
  if (callsReceivers.has(name) && query.dryRun !== true) return "receiver";
  return name === "listEvents" ? "read" : "search";
}

function operationEntries(): readonly (readonly [AdminOperationName, AdminOperation])[] {
  return Object.entries(adminOperations) as [AdminOperationName, AdminOperation][]; // The keys of the table.
}

type CallValues = Pick<AdminCall, "params" | "query" | "body">;

/** @throws BrokerError 200001; 200300 if the broker stopped reading the body. */
function readCall(request: FastifyRequest, { query, body }: AdminOperation): CallValues {
  const bytes = readBody(request);
  const values = {
    params: request.params,
    query: checked(query, readQuery(request)),
    body: body === undefined ? {} : checked(body, parseBody(bytes, request)),
  };
  return values as CallValues; // Fastify's parameters are texts, and the schemas have checked the rest.
}

function checked(schema: z.ZodType, value: unknown): unknown {
  const outcome = schema.safeParse(value);
  if (outcome.success) return outcome.data;
  const [issue] = outcome.error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "" : `${quote(issue.path.join("."))}: `;
  throw parameterError(`${place}${issue?.message ?? "it is malformed"}`);
}

function readQuery({ raw }: FastifyRequest): Readonly<Record<string, string>> {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(findQuery(raw.url ?? ""))) {
    if (values.has(name)) throw parameterError(`${quote(name)} is given twice`);
    values.set(name, value);
  }
  return Object.fromEntries(values);
}

/**
 * Even an operation that takes no body refuses a body that was not read to its end. If the rest is malformed, the client gets an answer that says that nothing
 * has run.
 */
function readBody(request: FastifyRequest): Buffer | undefined {
  const body = request.body as RawBody; // createBodyCollector sets it.
  if (body instanceof BodyTooLong) throw parameterError(`the request body is over ${body.bytesMax} bytes`);
  if (body instanceof BodyRefused) throw body.error;
  return body;
}

function parseBody(body: Buffer | undefined, request: FastifyRequest): unknown {
  if (body === undefined || body.length === 0) return {};
  const { mediaType } = parseContentType(request.headers["content-type"]);
  if (mediaType !== "application/json") throw parameterError("the body is not of type application/json");
  const shape = measureJson(body);
  const refusal = findEncodingRefusal(request.headers) ?? shape.refusal;
  if (refusal !== undefined) throw parameterError(refusal);
  const value = parseJson(body);
  if (repeatsName(shape, value)) throw parameterError("a member of the JSON body is given more than once");
  return value;
}
