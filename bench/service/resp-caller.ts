import { once } from "node:events";
import { connect } from "node:net";

/** A client of the RESP port that does not wait for one answer before it sends the next command. */
export interface RespCaller {
  /** Resolves when its answer has arrived. */
  send(...command: readonly string[]): Promise<void>;
  close(): void;
}

/** Answers of `SLUICE.CHECK` are arrays of short strings and numbers: their lines are counted, not parsed. */
export async function createRespCaller(port: number): Promise<RespCaller> {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  await once(socket, "connect");
  // Read from an index, because taking the first one off a long list moves all others.
  let waiting: (() => void)[] = [];
  let answered = 0;
  let rest = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    rest += text;
    for (let end = findEnd(rest, 0); end !== -1; end = findEnd(rest, 0)) {
      if (rest.startsWith("-")) throw new Error(`the server answered ${rest.slice(0, end)}`);
      rest = rest.slice(end);
      waiting[answered++]!();
    }
    if (answered > 10_000) {
      waiting = waiting.slice(answered);
      answered = 0;
    }
  });
  return {
    send: (...command) =>
      new Promise((resolve) => {
        waiting.push(resolve);
        socket.write(`*${command.length}\r\n${command.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`);
      }),
    close: () => socket.destroy(),
  };
}

/** Where the value that begins here ends, or -1 if it has not arrived whole. */
function findEnd(text: string, from: number): number {
  const line = text.indexOf("\r\n", from);
  if (line === -1) return -1;
  const end = line + 2;
  const count = Number(text.slice(from + 1, line));
  if (text[from] === "$") return count < 0 ? end : text.length >= end + count + 2 ? end + count + 2 : -1;
  if (text[from] !== "*") return end;
  let at = end;
  for (let i = 0; i < count; i++) {
    at = findEnd(text, at);
    if (at === -1) return -1;
  }
  return at;
}
