import { CompressionError } from "./compression-error.ts";

/**
 * How many bits the code of each byte has (RFC 7541, appendix B), one digit of base 36 per byte. The code is canonical: codes
 * of equal length follow each other in the order of their bytes, so these lengths define it.
 */
const lengthDigits =
  "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca" +
  "d67777777777777777777777878djde6f56565666577666567655677777fbeds" +
  "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn" +
  "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq";

/** The mark at the end of all codes. No text contains it; its first bits fill up the last byte of a text. */
const endMark = 256;
const endMarkLength = 30;

const lengths: readonly number[] = [...[...lengthDigits].map((digit) => Number.parseInt(digit, 36)), endMarkLength];
const codes = assignCodes();

function assignCodes(): readonly number[] {
  const assigned = new Array<number>(lengths.length);
  let code = 0;
  for (let length = 1; length <= endMarkLength; length += 1) {
    for (const [symbol, its] of lengths.entries()) if (its === length) assigned[symbol] = code++;
    code *= 2;
  }
  return assigned;
}

/*
 * Texts are decoded four bits at a time. A state is a place inside of the tree of codes; a step leads from a state and four bits
 * to the next state, and may complete one byte, since no code has fewer than five bits:
 *
 *     step = next state × 512 + completed byte (256: none), or a failure
 */
const stepsPerState = 16;
const noByte = 256;
const failure = -1;
const { steps, mayEnd } = buildSteps();

interface Node {
  readonly state: number;
  readonly children: (Node | number)[];
}

function buildSteps(): { steps: Int32Array; mayEnd: Uint8Array } {
  const nodes: Node[] = [];
  const createNode = (): Node => {
    const node: Node = { state: nodes.length, children: [] };
    nodes.push(node);
    return node;
  };
  const root = createNode();
  for (const [symbol, code] of codes.entries()) {
    let node = root;
    for (let bit = lengths[symbol]! - 1; bit > 0; bit -= 1) {
      const side = Math.floor(code / 2 ** bit) % 2;
      node.children[side] ??= createNode();
      node = node.children[side] as Node;
    }
    node.children[code % 2] = symbol;
  }
  const table = new Int32Array(nodes.length * stepsPerState);
  for (const node of nodes)
    for (let bits = 0; bits < stepsPerState; bits += 1)
      table[node.state * stepsPerState + bits] = findStep(root, node, bits);
  return { steps: table, mayEnd: findEnds(root, nodes.length) };
}

function findStep(root: Node, from: Node, bits: number): number {
  let node = from;
  let byte = noByte;
  for (let bit = 3; bit >= 0; bit -= 1) {
    const child = node.children[(bits >> bit) & 1]!;
    if (child === endMark) return failure;
    if (typeof child === "number") {
      byte = child;
      node = root;
    } else node = child;
  }
  return node.state * 512 + byte;
}

/** A text ends between two bytes, or after at most seven bits of the mark, which are ones. */
function findEnds(root: Node, states: number): Uint8Array {
  const ends = new Uint8Array(states);
  let node: Node | number = root;
  for (let ones = 0; ones <= 7 && typeof node !== "number"; ones += 1) {
    ends[node.state] = 1;
    node = node.children[1]!;
  }
  return ends;
}

let scratch = Buffer.allocUnsafeSlow(1024);

/** The text in `bytes` from `start` to `end`, one character per byte. Throws `CompressionError`. */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string {
  // The shortest code has five bits.
  const most = Math.ceil(((end - start) * 8) / 5);
  if (scratch.length < most) scratch = Buffer.allocUnsafeSlow(most * 2);
  let state = 0;
  let length = 0;
  for (let at = start; at < end; at += 1) {
    const byte = bytes[at]!;
    const first = steps[state * stepsPerState + (byte >> 4)]!;
    if (first === failure) throw new CompressionError("a text contains the mark of its end");
    if ((first & 511) !== noByte) scratch[length++] = first & 255;
    const second = steps[(first >> 9) * stepsPerState + (byte & 15)]!;
    if (second === failure) throw new CompressionError("a text contains the mark of its end");
    if ((second & 511) !== noByte) scratch[length++] = second & 255;
    state = second >> 9;
  }
  if (mayEnd[state] === 0) throw new CompressionError("a text is not filled up as it should be");
  return scratch.toString("latin1", 0, length);
}

/** The same backwards, for headers that are encoded once. */
export function encodeHuffman(text: string): Buffer {
  let bits = "";
  for (const byte of Buffer.from(text, "latin1")) bits += codes[byte]!.toString(2).padStart(lengths[byte]!, "0");
  bits = bits.padEnd(Math.ceil(bits.length / 8) * 8, "1");
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}
