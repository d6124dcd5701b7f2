import { connect } from "node:net";
import { FrameReader } from "../frame-reader.ts";
import { FrameType } from "../frames.ts";
import { HpackDecoder } from "../hpack/decoder.ts";
import { FrameGrammar, seededRandom } from "./frame-grammar.ts";
import { frame } from "./raw-client.ts";

/** What a server did with one conversation. */
export interface FuzzOutcome {
  /** How many frames it sent; all of them could be read. */
  readonly frames: number;
  /** The code of its last GOAWAY. */
  readonly goAway: number | undefined;
}

/** What the client asks last; the answer shows that everything before it was read. */
const lastPing = Buffer.from("finished", "latin1");
/** How long it waits for that. If the conversation ends in the middle of a frame, the wait times out. */
const quietMs = 300;
/** How long a conversation may take in all. */
const longestMs = 20_000;

/**
 * Holds the conversation of a seed with a server: sends it in pieces of random size, and reads every frame that comes back. Throws
 * if the server sends what is not HTTP/2. That the server itself goes on is for the caller to see.
 */
export async function fuzzFrames(port: number, seed: number, maxFrames = 60): Promise<FuzzOutcome> {
  const random = seededRandom(seed);
  const bytes = new FrameGrammar(random).conversation(maxFrames);
  const decoder = new HpackDecoder();
  let frames = 0;
  let goAway: number | undefined;
  let finish = (): void => {};
  const reader = new FrameReader({
    frame(type, _flags, _streamId, chunk, start, end) {
      frames += 1;
      if (type > FrameType.continuation) throw new Error(`seed ${seed}: a frame of type ${type}`);
      if (type === FrameType.goAway) goAway = chunk.readUInt32BE(start + 4);
      if (type === FrameType.ping && lastPing.equals(chunk.subarray(start, end))) finish();
      if (type === FrameType.headers) decoder.decode(chunk, start, end, { field() {} });
      return true;
    },
  });
  await new Promise<void>((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    const hangUp = (): void => void socket.destroy();
    finish = hangUp;
    const longest = setTimeout(hangUp, longestMs);
    let quiet: NodeJS.Timeout | undefined;
    let at = 0;
    const send = (): void => {
      if (socket.destroyed) return;
      if (at >= bytes.length) {
        socket.write(frame(FrameType.ping, 0, 0, lastPing));
        quiet = setTimeout(hangUp, quietMs);
        return;
      }
      const part = bytes.subarray(at, at + 1 + Math.floor(random() ** 3 * 20_000));
      at += part.length;
      socket.write(part, () => setImmediate(send));
    };
    socket.on("connect", send);
    socket.on("error", () => {});
    // A half-closed connection is closed.
    socket.on("end", hangUp);
    socket.on("data", (chunk: Buffer) => {
      quiet?.refresh();
      try {
        // What answers HTTP/1.1 is no frame.
        if (frames > 0 || chunk[3] === FrameType.settings) reader.read(chunk, 0);
      } catch (error) {
        reject(error as Error);
        hangUp();
      }
    });
    socket.on("close", () => {
      clearTimeout(longest);
      clearTimeout(quiet);
      resolve();
    });
  });
  return { frames, goAway };
}
