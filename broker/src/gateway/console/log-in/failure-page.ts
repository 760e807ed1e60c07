import { pageHeaders } from "../send-file.ts";
import type { FastifyReply } from "fastify";

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

export interface FailurePage {
  readonly status: number;
  readonly reason: string;
  /** Path of the console, with a slash at its end. */
  readonly consolePath: string;
  /** The `link` element of the console's style sheet; empty for none. */
  readonly styles: string;
}

/** Tells a person why a log-in failed. */
export function sendFailurePage(
  reply: FastifyReply,
  { status, reason, consolePath, styles }: FailurePage,
): FastifyReply {
  const policy = "default-src 'none'; style-src 'self'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'";
  return reply
    .status(status)
    .headers({ ...pageHeaders, "content-security-policy": policy, "cache-control": "no-store" })
    .header("content-type", "text/html; charset=utf-8")
    .send(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8" />
<base href="${consolePath}" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<meta name="color-scheme" content="light dark" />
<title>Not logged in – Stele</title>
${styles}
</head>
<body>
<main>
<h1>Not logged in</h1>
<p role="alert" class="failure">${escapeText(reason)}</p>
<p><a href="./">Back to the console</a></p>
</main>
</body>
</html>
`);
}

function escapeText(text: string): string {
  return text.replaceAll(/[&<>"]/g, (character) => entities[character] ?? "");
}
