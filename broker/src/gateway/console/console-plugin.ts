import type { FastifyInstance } from "fastify";
import type { Broker } from "../../engine/broker.ts";
import { findQuery } from "../shared/find-query.ts";
import { type ConsoleFile, type ConsoleFiles, indexFile, toEtag } from "./console-files.ts";
import { consolePath, docsPath } from "../shared/console-path.ts";
import type { LogIn } from "./log-in/log-in.ts";
import { LogInIndexes } from "./log-in/log-in-indexes.ts";
import { registerLogInRoutes } from "./log-in/log-in-routes.ts";
import { pageHeaders, sendFile } from "./send-file.ts";

export interface ConsoleOptions {
  readonly files: ConsoleFiles;
  readonly basePath: string;
  readonly extensionPrefix: string;
  /** Whether the documentation is served too. */
  readonly hasDocs?: boolean;
  /** Addresses of nodes of the chain that the page may ask for block hashes. */
  readonly chainNodes?: readonly string[] | undefined;
  /** Ways to log in besides keys. */
  readonly logIns?: readonly LogIn[] | undefined;
  /** Authenticates the tokens that providers issue, and counts failed log-ins. */
  readonly broker: Pick<Broker, "authenticate" | "refuseLogIn">;
}

interface IndexParts extends Pick<ConsoleOptions, "files" | "basePath" | "extensionPrefix"> {
  readonly hasDocs: boolean;
  readonly chainNodes: readonly string[];
}

/** Folder of the built files whose names contain a hash of their bytes. */
const hashedFolder = "assets/";

/**
 * The page runs its own scripts only, calls this broker and the nodes that its operator names, and appears in no frame. It
 * never turns a text into markup or script either: Trusted Types refuse that.
 */
function toContentPolicy(chainNodes: readonly string[]): string {
  const origins = chainNodes.map((url) => new URL(url).origin);
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    ["connect-src 'self'", ...new Set(origins)].join(" "),
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

/** Serves the console's files. Every other address below the console is a view of its page, except in the folder of hashed files. */
export function registerConsole(app: FastifyInstance, options: ConsoleOptions): void {
  const { broker, files, basePath, extensionPrefix, hasDocs = false, chainNodes = [], logIns = [] } = options;
  const index = toIndex({ files, basePath, extensionPrefix, hasDocs, chainNodes });
  const indexes = new LogInIndexes(index, logIns);
  const styles = /<link rel="stylesheet"[^>]*>/.exec(index.bytes.toString())?.[0] ?? "";
  if (logIns.length > 0) registerLogInRoutes(app, { broker, logIns, basePath, styles });
  const headers = { ...pageHeaders, "content-security-policy": toContentPolicy(chainNodes) };
  app.get(consolePath, (request, reply) => {
    const query = findQuery(request.raw.url ?? "");
    return reply.headers(headers).redirect(`${basePath}${consolePath}/${query === "" ? "" : `?${query}`}`);
  });
  app.get<{ Params: { "*": string } }>(`${consolePath}/*`, (request, reply) => {
    const path = request.params["*"];
    const file = path === indexFile ? undefined : files.get(path);
    if (file !== undefined) return sendFile(request, reply, { file, isHashed: path.startsWith(hashedFolder), headers });
    if (path.startsWith(hashedFolder)) return reply.callNotFound();
    return sendFile(request, reply, { file: indexes.at(request.headers.host), isHashed: false, headers });
  });
}

/** Fills in what the build leaves open: the base address of the page, the prefix of extensions, the chain nodes, and the link to the documentation. */
function toIndex({ files, basePath, extensionPrefix, hasDocs, chainNodes }: IndexParts): ConsoleFile {
  const built = files.get(indexFile)?.bytes.toString() ?? "";
  const placed = built.replace('<base href="/console/"', `<base href="${basePath}${consolePath}/"`);
  const help = hasDocs ? `<link rel="help" href="${basePath}${docsPath}/" />` : "";
  const named = placed
    .replace('name="extension-prefix" content="svc-"', `name="extension-prefix" content="${extensionPrefix}"`)
    .replace('name="chain-nodes" content=""', () => `name="chain-nodes" content="${chainNodes.join(" ")}"`);
  const bytes = Buffer.from(named.replace("</head>", `${help}</head>`));
  return { type: "text/html; charset=utf-8", bytes, gzip: undefined, etag: toEtag(bytes) };
}
