import { once } from "node:events";
import { createServer, type Socket } from "node:net";

/** A statement that a client waits for. */
export interface ScriptedStatement {
  readonly text: string;
  /** Answers as a suitable server. */
  readonly answer: () => void;
  /** Breaks the connection. */
  readonly cut: () => void;
}

/** Speaks the server's side of protocol 3.0 without TLS and passwords, and leaves the answer to each statement to `onStatement`. */
export async function startScriptedServer(onStatement: (statement: ScriptedStatement) => void) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    serve(socket, onStatement);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return {
    url: `postgres://stele@127.0.0.1:${address.port}/stele?sslmode=disable`,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

const ready = message("Z", Buffer.from("I"));

function serve(socket: Socket, onStatement: (statement: ScriptedStatement) => void): void {
  let received = Buffer.alloc(0);
  let hasStarted = false;
  let parsed = "";
  const ask = (text: string, head: readonly Buffer[]): void => {
    const answer = (): void => void socket.write(Buffer.concat([...head, ...rowsOf(text), ready]));
    onStatement({ text, answer, cut: () => socket.destroy() });
  };
  const take = (type: string, body: Buffer): void => {
    if (type === "") socket.write(Buffer.concat([message("R", Buffer.alloc(4)), ready]));
    else if (type === "Q") ask(textAt(body, 0), []);
    else if (type === "P") parsed = textAt(body, body.indexOf(0) + 1);
    else if (type === "S") ask(parsed, [message("1", Buffer.alloc(0)), message("2", Buffer.alloc(0))]);
    else if (type === "X") socket.end();
  };
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const at = hasStarted ? 1 : 0; // The first message has no type.
      if (received.length < at + 4 || received.length < at + received.readInt32BE(at)) return;
      const end = at + received.readInt32BE(at);
      const [type, body] = [received.toString("latin1", 0, at), received.subarray(at + 4, end)];
      received = received.subarray(end);
      hasStarted = true;
      take(type, body);
    }
  });
}

/** The row with which a suitable server answers `prepareSession`, and no row for any other statement. */
function rowsOf(text: string): readonly Buffer[] {
  if (!text.includes("server_version_num")) return [message("C", Buffer.from("SELECT 0\0"))];
  const columns = [column("version", 23), column("encoding", 25), column("standby", 16)];
  const values = ["150000", "UTF8", "f"].map((value) => Buffer.concat([int32(value.length), Buffer.from(value)]));
  return [
    message("T", Buffer.concat([int16(columns.length), ...columns])),
    message("D", Buffer.concat([int16(values.length), ...values])),
    message("C", Buffer.from("SELECT 1\0")),
  ];
}

function column(name: string, typeId: number): Buffer {
  const none = Buffer.alloc(6); // Table and column.
  return Buffer.concat([Buffer.from(`${name}\0`), none, int32(typeId), int16(-1), int32(-1), int16(0)]);
}

function message(type: string, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function textAt(body: Buffer, at: number): string {
  return body.toString("utf8", at, body.indexOf(0, at));
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}
