import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { findFreePort } from "../../harness/free-port.ts";

/** Path at which pages load the library: the same as if `npm install` had put it beside them. */
const libraryPath = "/node_modules/@stomp/stompjs/";
const libraryFolder = dirname(dirname(createRequire(import.meta.url).resolve("@stomp/stompjs")));

/** A web server for a test's pages and for the library @stomp/stompjs. */
export class PageServer implements AsyncDisposable {
  readonly origin: string;
  readonly #server: Server;
  readonly #texts = new Map<string, string>();

  private constructor(port: number, server: Server) {
    this.origin = `http://127.0.0.1:${port}`;
    this.#server = server;
  }

  static async start(): Promise<PageServer> {
    const port = await findFreePort();
    const server = createServer();
    const pages = new PageServer(port, server);
    server.on("request", ({ url = "" }, response) => {
      const text = pages.#find(new URL(url, pages.origin).pathname);
      const type = url.endsWith("js") ? "text/javascript" : "text/html";
      response.writeHead(text === undefined ? 404 : 200, { "content-type": `${type}; charset=utf-8` }).end(text);
    });
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return pages;
  }

  /** Serves a text at a path, and returns its address. */
  add(path: string, text: string): string {
    this.#texts.set(path, text);
    return this.origin + path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  #find(path: string): string | undefined {
    if (!path.startsWith(libraryPath)) return this.#texts.get(path);
    return readFileSync(join(libraryFolder, path.slice(libraryPath.length)), "utf8");
  }
}
