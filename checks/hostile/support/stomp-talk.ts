import { connect } from "node:net";
import { whenClosed } from "../../harness/when-closed.ts";
import type { AccessWorld, CredentialName } from "./access-world.ts";

/** Sends CONNECT with a credential, the frames and DISCONNECT. Returns everything that the broker sent until the connection closed. */
export async function talk(world: AccessWorld, name: CredentialName, ...frames: readonly string[]): Promise<string> {
  const localAddress = world.takeAddress();
  const from = localAddress === undefined ? {} : { localAddress };
  const socket = connect({ host: "127.0.0.1", port: world.port("STOMP"), ...from });
  const closed = whenClosed(socket);
  const passcode = world.credential(name);
  const login = passcode === undefined ? "" : `login:any\npasscode:${passcode}\n`;
  socket.write([`CONNECT\naccept-version:1.2\nhost:x\n${login}\n\0`, ...frames].join(""));
  socket.write("DISCONNECT\nreceipt:last\n\n\0");
  let text = "";
  socket.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  await closed;
  return text;
}
