import type { FastifyRequest } from "fastify";

/** Where the console is, below the base path. */
export const consolePath = "/console";

/** Where the documentation is, below the base path. */
export const docsPath = "/docs";

/** Where identity providers send browsers back to. */
export const callbackRoute = `${consolePath}/callback/:name`;

/**
 * Whether a browser opens a link to a page of the console or the documentation in its own tab. Such a page is the same for everybody, and opening
 * it changes nothing, so links from a chat or a mail program work. A provider's redirect back counts as such a link; it has an effect only with the
 * secrets in the browser's cookie.
 */
export function isLinkToPage({ routeOptions, raw }: FastifyRequest, basePath: string): boolean {
  const { method, headers } = raw;
  const { url } = routeOptions;
  const pages = [consolePath, docsPath].map((path) => `${basePath}${path}`);
  return (
    (url === `${basePath}${callbackRoute}` || pages.some((page) => url === page || url === `${page}/*`)) &&
    method === "GET" &&
    headers.origin === undefined &&
    headers["sec-fetch-mode"] === "navigate" &&
    headers["sec-fetch-dest"] === "document"
  );
}

/** Whether a client asks for a page rather than for data: browsers name `text/html`, programs do not. */
export function wantsPage(accept: string | undefined): boolean {
  return (
    accept !== undefined && /(?:^|,)\s*text\/html\s*(?:[,;]|$)/i.test(accept) && !/application\/json/i.test(accept)
  );
}
