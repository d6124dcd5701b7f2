import { Agent, request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";

/** A client that is only as good as a measurement needs: it sends the same bytes again, and reads answers to their ends. */
export interface Caller {
  /** Resolves with the body of the answer. Rejects unless it is a decision. */
  ask(body: Buffer): Promise<Buffer>;
  /** Bytes of both directions until now. */
  bytes(): number;
  close(): void;
}

/** gRPC, one call in a stream, over a few connections in turn. */
export function callGrpc(port: number, path: string, connections: number): Caller {
  const sessions = Array.from({ length: connections }, () => connectHttp2(`http://127.0.0.1:${port}`));
  let next = 0;
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc", te: "trailers" };
  return {
    ask: (body) =>
      new Promise((resolve, reject) => {
        const stream = sessions[next++ % connections]!.request(headers);
        const pieces: Buffer[] = [];
        let status = "";
        const read = (given: { "grpc-status"?: unknown }): void => {
          status = String(given["grpc-status"] ?? status);
        };
        stream.on("response", read).on("trailers", read).on("error", reject);
        stream.on("data", (piece: Buffer) => pieces.push(piece));
        stream.on("end", () =>
          status === "0" ? resolve(Buffer.concat(pieces)) : reject(new Error(`gRPC status ${status || "missing"}`)),
        );
        stream.end(body);
      }),
    bytes: () => sessions.reduce((sum, { socket }) => sum + socket.bytesRead + socket.bytesWritten, 0),
    close: () => sessions.forEach((session) => void session.destroy()),
  };
}

export function callHttp(port: number, path: string, connections: number): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const sockets = new Set<Socket>();
  return {
    ask: (body) =>
      new Promise((resolve, reject) => {
        const headers = { "content-type": "application/json", "content-length": body.length };
        const sent = request({ agent, port, host: "127.0.0.1", method: "POST", path, headers }, (response) => {
          const pieces: Buffer[] = [];
          response.on("data", (piece: Buffer) => pieces.push(piece)).on("error", reject);
          response.on("end", () =>
            response.statusCode === 200
              ? resolve(Buffer.concat(pieces))
              : reject(new Error(`HTTP status ${response.statusCode}`)),
          );
        });
        sent.on("socket", (socket) => sockets.add(socket)).on("error", reject);
        sent.end(body);
      }),
    bytes: () => [...sockets].reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0),
    close: () => agent.destroy(),
  };
}

/** RESP over one connection. Each body holds `commands` commands, whose replies are lists of five numbers. */
export function callResp(port: number, commands: number): Caller {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  let failed: Error | undefined;
  let waiting: { resolve(answer: Buffer): void; reject(error: Error): void; lines: number } | undefined;
  socket.on("error", (error) => {
    failed = error;
    waiting?.reject(error);
  });
  socket.on("data", (piece: Buffer) => {
    if (waiting === undefined) return;
    if (piece.includes("-ERR")) waiting.reject(new Error(piece.toString("latin1").trim()));
    for (const byte of piece) if (byte === 0x0a) waiting.lines -= 1;
    if (waiting.lines > 0) return;
    const { resolve } = waiting;
    waiting = undefined;
    resolve(piece);
  });
  return {
    ask: (body) =>
      new Promise((resolve, reject) => {
        if (failed !== undefined) return reject(failed);
        waiting = { resolve, reject, lines: commands * linesPerReply };
        socket.write(body);
      }),
    bytes: () => socket.bytesRead + socket.bytesWritten,
    close: () => void socket.destroy(),
  };
}

/** `*5`, and the five numbers. */
const linesPerReply = 6;
