/** Whether a callback address matches a pattern. */
export type ReceiverRule = (url: URL) => boolean;

const pattern =
  /^(https?:\/\/)?(\*\.)?([0-9a-z_](?:[0-9a-z_-]*[0-9a-z_])?(?:\.[0-9a-z_](?:[0-9a-z_-]*[0-9a-z_])?)*|\[[0-9a-f:.]+\])(:\d{1,5})?$/;

/**
 * Parses a pattern; undefined if it is malformed. `hooks.example.org` matches a host at any port, `hooks.example.org:8080` at one port;
 * `https://hooks.example.org` matches an origin; `*.` before the host matches every subdomain.
 */
export function findReceiverRule(text: string): ReceiverRule | undefined {
  const [whole, scheme, wildcard, host = "", port] = pattern.exec(text.toLowerCase()) ?? [];
  if (whole === undefined) return undefined;
  const isHost = (name: string): boolean => (wildcard === undefined ? name === host : name.endsWith(`.${host}`));
  return (url) => {
    if (!isHost(url.hostname.replace(/\.$/, ""))) return false;
    if (scheme === undefined) return port === undefined || portOf(url) === port;
    return url.protocol === scheme.slice(0, -2) && portOf(url) === (port ?? usualPort(url));
  };
}

function portOf(url: URL): string {
  return url.port === "" ? usualPort(url) : `:${url.port}`;
}

function usualPort({ protocol }: URL): string {
  return protocol === "https:" ? ":443" : ":80";
}
