/** Answers whether a callback address is one of those that a pattern names. */
export type ReceiverRule = (url: URL) => boolean;

const pattern =
  /^(https?:\/\/)?(\*\.)?([0-9a-z_](?:[0-9a-z_-]*[0-9a-z_])?(?:\.[0-9a-z_](?:[0-9a-z_-]*[0-9a-z_])?)*|\[[0-9a-f:.]+\])(:\d{1,5})?$/;

/**
 * Reads a pattern; undefined when it is none. `hooks.example.org` names a host at any port, `hooks.example.org:8080` at one;
 * `https://hooks.example.org` is an origin; `*.` before the host stands for every host below it.
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
