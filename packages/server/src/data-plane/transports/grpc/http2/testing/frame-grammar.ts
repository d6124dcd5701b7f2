import { Flag, FrameType, maxPayload, maxWindow, preface } from "../frames.ts";
import { frame, message, requestBlock, uint32 } from "./raw-client.ts";

/** Numbers in [0, 1), the same for the same seed. */
export type Random = () => number;

export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const paths = [
  "/sluice.v1.RateLimiter/Check",
  "/sluice.v1.RateLimiter/CheckBatch",
  "/sluice.v1.RateLimiter/CheckStream",
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/Watch",
  "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit",
  "/nowhere.Nothing/Here",
  "/",
];

/**
 * Writes what a client of HTTP/2 might send: mostly what the grammar of frames permits, in an order that makes sense, and now
 * and then something that it does not. Everything depends on the random numbers alone.
 */
export class FrameGrammar {
  readonly #random: Random;
  #nextId = 1;
  /** Streams whose body may go on. */
  readonly #open: number[] = [];
  /** How many fields the server keeps, at least. */
  #kept = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** All that one connection sends. */
  conversation(maxFrames: number): Buffer {
    const parts: Buffer[] = [];
    if (this.#chance(0.98)) parts.push(preface);
    if (this.#chance(0.97)) parts.push(frame(FrameType.settings, 0, 0, this.#settings()));
    parts.push(frame(FrameType.settings, Flag.acknowledge, 0), this.#call());
    const frames = 1 + this.#below(maxFrames);
    for (let i = 0; i < frames; i++) parts.push(this.#next());
    const bytes = Buffer.concat(parts);
    // One byte wrong somewhere, or the end missing.
    if (this.#chance(0.2)) bytes[this.#below(bytes.length)] = this.#below(256);
    return this.#chance(0.1) ? bytes.subarray(0, this.#below(bytes.length)) : bytes;
  }

  #next(): Buffer {
    const kinds: readonly (readonly [weight: number, make: () => Buffer])[] = [
      [8, () => this.#call()],
      [3, () => this.#begin()],
      [4, () => (this.#open.length === 0 ? this.#begin() : this.#data(this.#openBody()))],
      [2, () => this.#reset()],
      [2, () => frame(FrameType.windowUpdate, 0, this.#chance(0.3) ? 0 : this.#anyId(), uint32(this.#increment()))],
      [1, () => frame(FrameType.settings, 0, 0, this.#settings())],
      [1, () => frame(FrameType.ping, this.#below(2), 0, this.#bytes(8))],
      [1, () => frame(FrameType.priority, 0, this.#anyId(), this.#bytes(this.#chance(0.8) ? 5 : this.#below(8)))],
      [1, () => this.#continued(this.#openId())],
      [0.3, () => frame(FrameType.goAway, 0, 0, this.#bytes(8 + this.#below(10)))],
      [0.2, () => frame(this.#below(256), this.#below(256), this.#anyId(), this.#bytes(this.#below(40)))],
      [0.1, () => this.#bytes(this.#below(60))],
    ];
    const all = kinds.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.#random() * all;
    for (const [weight, make] of kinds) {
      left -= weight;
      if (left < 0) return make();
    }
    return this.#call();
  }

  /** A request whose body may follow. */
  #begin(): Buffer {
    const id = this.#openId();
    const isWhole = this.#chance(0.2);
    if (!isWhole) this.#open.push(id);
    return this.#headers(id, isWhole ? Flag.endHeaders | Flag.endStream : Flag.endHeaders);
  }

  /** A whole call, most often a good one. */
  #call(): Buffer {
    const id = this.#openId();
    return Buffer.concat([this.#headers(id, Flag.endHeaders), this.#data(id, Flag.endStream)]);
  }

  #headers(id: number, flags: number): Buffer {
    const block = this.#block();
    if (this.#chance(0.1)) {
      const priority = Buffer.concat([uint32(this.#below(20)), this.#bytes(1)]);
      return frame(FrameType.headers, flags | Flag.priority, id, Buffer.concat([priority, block]));
    }
    if (this.#chance(0.1)) return frame(FrameType.headers, flags | Flag.padded, id, this.#padded(block));
    return frame(FrameType.headers, flags, id, block);
  }

  #reset(): Buffer {
    const id = this.#anyId();
    if (this.#open.includes(id) && this.#chance(0.95)) this.#open.splice(this.#open.indexOf(id), 1);
    return frame(FrameType.resetStream, 0, id, uint32(this.#below(15)));
  }

  #continued(id: number): Buffer {
    const block = this.#block();
    const cut = this.#below(block.length);
    const parts = [frame(FrameType.headers, this.#below(2), id, block.subarray(0, cut))];
    if (this.#chance(0.2)) parts.push(frame(FrameType.continuation, 0, id));
    parts.push(frame(FrameType.continuation, Flag.endHeaders, id, block.subarray(cut)));
    return Buffer.concat(parts);
  }

  #data(id: number, flags: number = this.#chance(0.2) ? Flag.endStream : 0): Buffer {
    if (flags === Flag.endStream && this.#open.includes(id)) this.#open.splice(this.#open.indexOf(id), 1);
    const body = this.#body();
    if (this.#chance(0.1)) return frame(FrameType.data, flags | Flag.padded, id, this.#padded(body));
    return frame(FrameType.data, flags, id, body.subarray(0, maxPayload));
  }

  /** A message, several, a part of one, or noise. */
  #body(): Buffer {
    const dimension = Buffer.from([0x0a, 4, 0x75, 0x73, 0x65, 0x72, 0x12, 1, 0x61 + this.#below(26)]);
    const check = Buffer.from([0x12, dimension.length, ...dimension]);
    const good = this.#chance(0.5) ? message(check) : message(Buffer.from([0x12, check.length, ...check]));
    if (this.#chance(0.7)) return good;
    if (this.#chance(0.4)) return Buffer.concat(Array.from({ length: 1 + this.#below(5) }, () => good));
    if (this.#chance(0.5)) return good.subarray(0, this.#below(good.length));
    return this.#chance(0.5) ? message(this.#bytes(this.#below(200))) : this.#bytes(this.#below(300));
  }

  #padded(payload: Buffer): Buffer {
    const padding = this.#below(40);
    const told = this.#chance(0.95) ? padding : this.#below(256);
    return Buffer.concat([Buffer.from([told]), payload.subarray(0, maxPayload - 300), Buffer.alloc(padding)]);
  }

  #block(): Buffer {
    const more: (readonly [string, string])[] = [];
    if (this.#chance(0.3)) more.push(["grpc-timeout", this.#pick(["20m", "1n", "5S", "0S", "soon", "99999999H"])]);
    if (this.#chance(0.1)) more.push(["grpc-encoding", this.#pick(["gzip", "identity", "snappy"])]);
    if (this.#chance(0.05)) more.push([this.#pick(["connection", "Upper", ":status", "te", "x y"]), "x"]);
    if (this.#chance(0.05)) more.push(["content-length", String(this.#below(100))]);
    if (this.#chance(0.02)) more.push(["x-large", "y".repeat(this.#below(12_000))]);
    const block = requestBlock(this.#pick(paths), more);
    // Fields that are kept, and fields by their index in what is kept.
    const kept = Buffer.from([0x40, 1, 0x61 + this.#below(26), 1, 0x61 + this.#below(26)]);
    const parts = [block];
    if (this.#chance(0.05)) {
      parts.unshift(Buffer.from([0x20 + this.#below(0x1f)]));
      this.#kept = -Infinity;
    }
    if (this.#chance(0.3)) {
      parts.push(kept);
      this.#kept += 1;
    }
    if (this.#kept > 0 && this.#chance(0.3))
      parts.push(Buffer.from([0x80 | (62 + this.#below(Math.min(this.#kept, 60)))]));
    else if (this.#chance(0.005)) parts.push(Buffer.from([0xff, this.#below(128)]));
    if (this.#chance(0.01)) parts.push(this.#bytes(this.#below(10)));
    return Buffer.concat(parts);
  }

  #settings(): Buffer {
    const count = this.#below(4);
    return Buffer.concat(
      Array.from({ length: count }, () => {
        const id = 1 + this.#below(8);
        const value = this.#pick([0, 1, 100, 16_384, 65_535, 1_000_000, this.#chance(0.05) ? maxWindow + 1 : 4_096]);
        return Buffer.concat([Buffer.from([0, id]), uint32(id === 2 ? value % 2 : id === 5 ? 16_384 + value : value)]);
      }),
    );
  }

  #increment(): number {
    return this.#pick([1, 10, 1_000, 100_000, this.#chance(0.1) ? 0 : 5, this.#chance(0.05) ? maxWindow : 7]);
  }

  #openId(): number {
    const id = this.#nextId;
    this.#nextId += this.#chance(0.99) ? 2 : 2 + 2 * this.#below(5) + (this.#chance(0.1) ? 1 : 0);
    return id;
  }

  /** A stream whose body may go on, or now and then another one. */
  #openBody(): number {
    return this.#chance(0.99) ? this.#pick(this.#open) : this.#anyId();
  }

  /** A stream that was opened, or the connection, or now and then one that was not. */
  #anyId(): number {
    if (this.#chance(0.01)) return 0;
    const id = 2 * this.#below(Math.ceil(this.#nextId / 2) + 1) + 1;
    return this.#chance(0.97) ? Math.min(id, Math.max(this.#nextId - 2, 1)) : id + 1;
  }

  #bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.#below(256)));
  }

  #below(most: number): number {
    return Math.floor(this.#random() * most);
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  #pick<T>(choices: readonly T[]): T {
    return choices[this.#below(choices.length)]!;
  }
}
