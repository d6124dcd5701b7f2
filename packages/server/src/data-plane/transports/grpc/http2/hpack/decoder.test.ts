import { connect, type IncomingHttpHeaders, type OutgoingHttpHeaders, sensitiveHeaders } from "node:http2";
import { type AddressInfo, createServer as createNetServer, type Socket } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FrameReader } from "../frame-reader.ts";
import { Flag, FrameType, preface, writeFrameHead } from "../frames.ts";
import { CompressionError } from "./compression-error.ts";
import { HpackDecoder } from "./decoder.ts";
import { encodeHeaders } from "./encode-headers.ts";
import { decodeHuffman, encodeHuffman } from "./huffman.ts";

type Fields = [name: string, value: string][];

function decode(decoder: HpackDecoder, block: Buffer): Fields {
  const fields: Fields = [];
  decoder.decode(block, 0, block.length, { field: (name, value) => fields.push([name, value]) });
  return fields;
}

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");

const firstRequest: Fields = [
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "www.example.com"],
];
const secondRequest: Fields = [...firstRequest, ["cache-control", "no-cache"]];
const thirdRequest: Fields = [
  [":method", "GET"],
  [":scheme", "https"],
  [":path", "/index.html"],
  [":authority", "www.example.com"],
  ["custom-key", "custom-value"],
];

/** The examples of RFC 7541, appendix C. `table`: its bytes afterwards. */
const conversations: Record<string, { block: string; fields: Fields; table: number }[]> = {
  "C.2.1 a literal that is kept": [
    {
      block: "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
      fields: [["custom-key", "custom-header"]],
      table: 55,
    },
  ],
  "C.2.2 a literal that is not": [
    { block: "040c 2f73 616d 706c 652f 7061 7468", fields: [[":path", "/sample/path"]], table: 0 },
  ],
  "C.2.3 a literal that never is": [
    { block: "1008 7061 7373 776f 7264 0673 6563 7265 74", fields: [["password", "secret"]], table: 0 },
  ],
  "C.2.4 a field by its index": [{ block: "82", fields: [[":method", "GET"]], table: 0 }],
  "C.3 requests": [
    { block: "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", fields: firstRequest, table: 57 },
    { block: "8286 84be 5808 6e6f 2d63 6163 6865", fields: secondRequest, table: 110 },
    {
      block: "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
      fields: thirdRequest,
      table: 164,
    },
  ],
  "C.4 requests in Huffman's code": [
    { block: "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", fields: firstRequest, table: 57 },
    { block: "8286 84be 5886 a8eb 1064 9cbf", fields: secondRequest, table: 110 },
    { block: "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", fields: thirdRequest, table: 164 },
  ],
};

const locationField: Fields[number] = ["location", "https://www.example.com"];
/** The answers of C.5 and C.6, in a table of 256 bytes. */
const answers: { plain: string; huffman: string; fields: Fields; table: number }[] = [
  {
    plain:
      "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d " +
      "546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
    huffman:
      "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 " +
      "8f0b 97c8 e9ae 82ae 43d3",
    fields: [
      [":status", "302"],
      ["cache-control", "private"],
      ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
      locationField,
    ],
    table: 222,
  },
  {
    plain: "4803 3330 37c1 c0bf",
    huffman: "4883 640e ffc1 c0bf",
    fields: [
      [":status", "307"],
      ["cache-control", "private"],
      ["date", "Mon, 21 Oct 2013 20:13:21 GMT"],
      locationField,
    ],
    table: 222,
  },
  {
    plain:
      "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f " +
      "6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b " +
      "2076 6572 7369 6f6e 3d31",
    huffman:
      "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 " +
      "dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    fields: [
      [":status", "200"],
      ["cache-control", "private"],
      ["date", "Mon, 21 Oct 2013 20:13:22 GMT"],
      locationField,
      ["content-encoding", "gzip"],
      ["set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"],
    ],
    table: 215,
  },
];

describe("header blocks", () => {
  for (const [name, blocks] of Object.entries(conversations))
    it(`are decoded as RFC 7541 shows: ${name}`, () => {
      const decoder = new HpackDecoder();
      for (const { block, fields, table } of blocks) {
        expect(decode(decoder, bytes(block))).toEqual(fields);
        expect(decoder.table.bytes).toBe(table);
      }
    });

  for (const form of ["plain", "huffman"] as const)
    it(`are decoded as RFC 7541 shows, in a small table: ${form === "plain" ? "C.5" : "C.6"}`, () => {
      const decoder = new HpackDecoder();
      // A table of 256 bytes.
      decode(decoder, bytes("3fe101"));
      for (const { [form]: block, fields, table } of answers) {
        expect(decode(decoder, bytes(block))).toEqual(fields);
        expect(decoder.table.bytes).toBe(table);
      }
    });

  it("that cannot be decoded are refused, and cost no more than their bytes", () => {
    const bad: Record<string, string> = {
      "the index 0": "80",
      "an index beyond both tables": "bf",
      "a name beyond both tables": "7f 05 01 61",
      "a text that goes on after the end": "40 05 61",
      "a number that never ends": "ff ff ff ff ff ff ff ff ff ff ff",
      "a number that is cut off": "ff",
      "a number of 60 bits": "ff ff ff ff ff ff ff ff 7f",
      "a table beyond what was agreed on": "3f e2 1f",
      "a table that is resized behind a field": "82 20",
      "Huffman's code with the mark of its end": "40 84 ff ff ff ff 00",
      "Huffman's code filled up with zeros": "40 81 18 00",
      "Huffman's code filled up with a whole byte": "40 82 1f ff 00",
    };
    for (const [name, block] of Object.entries(bad))
      expect(() => decode(new HpackDecoder(), bytes(block)), name).toThrow(CompressionError);
  });

  it("with a field that is too large for the table empty it", () => {
    const decoder = new HpackDecoder();
    decode(decoder, encodeKept("a", "b"));
    expect([decoder.table.count, decoder.table.bytes]).toEqual([1, 34]);
    expect(decode(decoder, encodeKept("large", "x".repeat(5_000)))).toHaveLength(1);
    expect([decoder.table.count, decoder.table.bytes]).toEqual([0, 0]);
  });

  it("may name a large field again and again, which is handed on and not copied", () => {
    const decoder = new HpackDecoder();
    decode(decoder, encodeKept("x", "y".repeat(3_900)));
    let length = 0;
    const block = Buffer.alloc(60_000, 0xbe);
    decoder.decode(block, 0, block.length, { field: (_, value) => (length += value.length) });
    expect(length).toBe(60_000 * 3_900);
  });

  it("of our own mean the same to a new decoder, and leave its table alone", () => {
    const text = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)) });
    const field = fc.tuple(fc.constantFrom(":status", "content-type", "grpc-status", "x-any"), text);
    fc.assert(
      fc.property(fc.array(field, { maxLength: 10 }), (fields) => {
        const decoder = new HpackDecoder();
        expect(decode(decoder, encodeHeaders(fields))).toEqual(fields);
        expect(decoder.table.changes).toBe(0);
      }),
    );
  });
});

/** A literal field that is kept, without Huffman's code. */
function encodeKept(name: string, value: string): Buffer {
  const length = value.length;
  const lengthBytes = length < 127 ? [length] : [127, ((length - 127) & 0x7f) | 0x80, (length - 127) >> 7];
  return Buffer.from([0x40, name.length, ...Buffer.from(name), ...lengthBytes, ...Buffer.from(value)]);
}

describe("Huffman's code", () => {
  it("gives every text back", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (any) => {
        const text = Buffer.from(any).toString("latin1");
        const code = encodeHuffman(text);
        expect(decodeHuffman(code, 0, code.length)).toBe(text);
      }),
    );
  });
});

/** What Node's encoder makes of random headers, one request after another on one connection, is what Node's decoder makes of it. */
describe("against Node's HTTP/2", () => {
  let server: ReturnType<typeof createNetServer>;
  let blocks: Buffer[];
  let arrived: (() => void) | undefined;

  beforeAll(async () => {
    server = createNetServer((socket: Socket) => {
      let left = preface.length;
      let parts: Buffer[] = [];
      const reader = new FrameReader({
        frame(type, flags, _id, chunk, start, end) {
          if (type !== FrameType.headers && type !== FrameType.continuation) return true;
          const padded = (flags & Flag.priority) !== 0 && type === FrameType.headers ? 5 : 0;
          parts.push(Buffer.from(chunk.subarray(start + padded, end)));
          if ((flags & Flag.endHeaders) !== 0) {
            blocks.push(Buffer.concat(parts));
            parts = [];
            arrived?.();
          }
          return true;
        },
      });
      const settings = Buffer.alloc(9);
      writeFrameHead(settings, 0, 0, FrameType.settings, 0, 0);
      socket.write(settings);
      socket.on("error", () => {});
      socket.on("data", (chunk) => {
        const skip = Math.min(left, chunk.length);
        left -= skip;
        if (skip < chunk.length) reader.read(chunk, skip);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  });
  afterAll(() => server.close());

  it("decodes what its client sends, in random order, with repetitions, sizes and secrets", async () => {
    const name = fc.constantFrom("x-a", "x-b", "user-agent", "authorization", "cookie", "te", "grpc-timeout", "x-long");
    const unit = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
    const value = fc.oneof(
      fc.constantFrom("trailers", "20m", "Bearer token", "same"),
      fc.string({ unit, minLength: 1, maxLength: 400 }),
    );
    const headers = fc.dictionary(name, value, { maxKeys: 6 });
    const conversation = fc.array(headers, { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(conversation, fc.boolean(), async (requests, secret) => {
        blocks = [];
        const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
        session.on("error", () => {});
        const whole = new Promise<void>((resolve) => {
          arrived = () => blocks.length === requests.length && resolve();
        });
        for (const fields of requests) {
          const sent: OutgoingHttpHeaders = { ":path": "/x", ...fields, te: "trailers" };
          if (secret) Object.assign(sent, { [sensitiveHeaders]: ["authorization", "x-a"] });
          session.request(sent).on("error", () => {});
        }
        await whole;
        const decoder = new HpackDecoder();
        for (const [i, block] of blocks.entries()) {
          const got = Object.fromEntries(decode(decoder, block)) as IncomingHttpHeaders;
          expect(got).toMatchObject({ ":path": "/x", ":method": "GET", ...requests[i], te: "trailers" });
        }
        session.destroy();
      }),
      { numRuns: 30 },
    );
  });

  it("is decoded by it: our blocks, as answers", async () => {
    const fields: Fields = [
      [":status", "200"],
      ["content-type", "application/grpc+proto"],
      ["grpc-status", "3"],
      ["grpc-message", "any text, with %20 and ~"],
      ["x-long", "z".repeat(3_000)],
    ];
    const block = encodeHeaders(fields);
    const answering = createNetServer((socket) => {
      const frame = Buffer.alloc(9 + 9 + block.length);
      writeFrameHead(frame, 0, 0, FrameType.settings, 0, 0);
      writeFrameHead(frame, 9, block.length, FrameType.headers, Flag.endHeaders | Flag.endStream, 1);
      frame.set(block, 18);
      socket.on("error", () => {});
      socket.once("data", () => socket.write(frame));
    });
    await new Promise<void>((resolve) => answering.listen(0, "127.0.0.1", resolve));
    const session = connect(`http://127.0.0.1:${(answering.address() as AddressInfo).port}`);
    const got = await new Promise<IncomingHttpHeaders>((resolve, reject) => {
      session.on("error", reject);
      session.request({ ":path": "/" }).on("response", resolve).on("error", reject);
    });
    const { ":status": status, ...rest } = Object.fromEntries(fields);
    expect(got).toMatchObject({ ...rest, ":status": Number(status) });
    session.destroy();
    answering.close();
  });
});
