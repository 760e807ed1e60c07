import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import {
  type ReceiverOptions,
  toFetchHandler,
  toHonoHandler,
  toNodeHandler,
  webhookPlugin,
} from "@stele/client/webhook";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";

/** A running server of a web framework. */
export interface FrameworkServer extends AsyncDisposable {
  /** Address of the handler. */
  readonly url: string;
}

/** A web framework with the client's handler for it, set up as a user does. */
export interface Framework {
  readonly name: string;
  serve(options: ReceiverOptions): Promise<FrameworkServer>;
  /** Like `serve`, with middleware that reads the body before the handler, as many programs have. */
  readonly serveParsed?: (options: ReceiverOptions) => Promise<FrameworkServer>;
  /** Path of a route of the program itself, which returns the parsed body. */
  readonly otherPath?: string;
}

const path = "/hook";
const otherPath = "/other";

export const frameworks: readonly [Framework, ...Framework[]] = [
  { name: "node:http", serve: (options) => listening(createServer(toNodeHandler(options))) },
  {
    name: "Express",
    serve: (options) => listening(createServer(express().all(path, toNodeHandler(options)).use(express.json()))),
    serveParsed: (options) =>
      listening(
        createServer(
          express()
            .use(express.json({ limit: "8mb" }))
            .all(path, toNodeHandler(options)),
        ),
      ),
  },
  {
    name: "Express with express.raw()",
    serve: (options) => {
      const raw = express.raw({ type: "application/json", limit: "8mb" });
      return listening(createServer(express().all(path, raw, toNodeHandler(options))));
    },
  },
  {
    name: "Fastify",
    otherPath,
    serve: (options) => fastifyServer((app) => void app.register(webhookPlugin, { path, ...options })),
  },
  {
    name: "Hono",
    serve: (options) => honoServer(new Hono().all(path, toHonoHandler(options))),
    serveParsed: (options) => {
      const app = new Hono();
      app.use(async (context, next) => {
        await context.req.json();
        await next();
      });
      return honoServer(app.all(path, toHonoHandler(options)));
    },
  },
  {
    name: "a server of Request and Response",
    serve: (options) => {
      const handle = toFetchHandler(options);
      return listening(serve({ fetch: handle, createServer, port: 0, hostname: "127.0.0.1" }) as Server);
    },
  },
];

async function fastifyServer(add: (app: ReturnType<typeof fastify>) => void): Promise<FrameworkServer> {
  const app = fastify();
  app.post(otherPath, async (request) => ({ got: request.body }));
  add(app);
  await app.listen({ port: 0, host: "127.0.0.1" });
  return { url: urlOf(app.server), [Symbol.asyncDispose]: () => app.close() };
}

function honoServer(app: Hono): Promise<FrameworkServer> {
  return listening(serve({ fetch: app.fetch, createServer, port: 0, hostname: "127.0.0.1" }) as Server);
}

/** Listens, unless the server already does: `serve` of Hono starts to listen itself. */
async function listening(server: Server): Promise<FrameworkServer> {
  if (!server.listening) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  return {
    url: urlOf(server),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function urlOf(server: { address(): AddressInfo | string | null }): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`; // It listens on TCP.
}
