import type { FastifyInstance } from "fastify";
import type { FindHolding } from "../in-flight/in-flight.ts";
import { chainAnswerBytesMax } from "../limits.ts";
import { registerRpc } from "../shared/rpc/rpc-plugin.ts";
import { responseTooLarge, tooBusy, toProtocolError } from "./chain-error.ts";
import { ChainReader, type ChainReaderOptions } from "./chain-reader.ts";

/** Serves the chain read-only to any Ethereum tool: JSON-RPC 2.0 at POST `/chain`. */
export function registerChain(app: FastifyInstance, options: ChainReaderOptions, findHolding: FindHolding): void {
  const reader = new ChainReader(options);
  app.addHook("preClose", async () => reader.close());
  registerRpc(
    app,
    {
      path: "/chain",
      protocol: "chain",
      logger: options.logger,
      answerLimit: { bytesMax: chainAnswerBytesMax, error: responseTooLarge, firstFits: false, shortResultBytesMax: 0 },
      isReadOnly: true,
      call: (request) => reader.call(request),
      toProtocolError,
      toBusyError: () => tooBusy,
    },
    findHolding,
  );
}
