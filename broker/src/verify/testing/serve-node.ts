import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { AnvilChain } from "../../ledger/evm/proof/testing/anvil-chain.ts";

interface Call {
  readonly method: string;
  readonly params: readonly unknown[];
}

export interface ServedNode {
  readonly url: string;
  close(): Promise<void>;
}

/** A node that refuses some calls and changes some answers; the chain answers the rest. */
export async function serveNode(
  chain: AnvilChain,
  refuse: (call: Call) => object | undefined = () => undefined,
  change: (method: string, result: unknown) => unknown = (_, result) => result,
): Promise<ServedNode> {
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer); // A request without an encoding gives buffers.
      const call = JSON.parse(Buffer.concat(chunks).toString()) as Call; // The command sends only calls.
      const error = refuse(call);
      const answer =
        error === undefined ? { result: change(call.method, await chain.provider.request(call)) } : { error };
      response.end(JSON.stringify({ jsonrpc: "2.0", id: 1, ...answer }));
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
