import { randomBytes } from "node:crypto";

const nameBytes = 12;
let stock: Buffer = Buffer.alloc(0);
let used = 0;

/**
 * A name that is unique and cannot be guessed. Random bytes are drawn in stock: one by one they cost a microsecond
 * each.
 */
export function newName(): string {
  if (used + nameBytes > stock.length) {
    stock = randomBytes(nameBytes * 256);
    used = 0;
  }
  used += nameBytes;
  return stock.toString("base64url", used - nameBytes, used);
}
