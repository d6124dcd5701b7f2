import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

const slabBytes = 64 * 1024;
const maxFreeSlabs = 32;
/** Slabs whose bytes the kernel has taken, for the next connection that writes. */
const freeSlabs: Buffer[] = [];

const noBytes = Buffer.alloc(0);

/** While this many bytes wait for the kernel, a connection neither reads nor answers. */
export const fullBacklogBytes: number = 1024 * 1024;

/**
 * What a connection is about to send. Frames are written in place, behind each other, and everything that was written in one turn
 * of the event loop leaves in one write.
 */
export class Output {
  /** Frames are written here, at `at`, after `reserve`. */
  bytes: Buffer = noBytes;
  at = 0;
  readonly #socket: Socket;
  readonly #isEncrypted: boolean;
  /** The rest of the slab that was last handed over as it is. */
  #spareBytes = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#isEncrypted = socket instanceof TLSSocket;
  }

  /** Bytes that the kernel has not taken, and the rest of the slab that some of them are in. */
  get heldBytes(): number {
    const { writableLength } = this.#socket;
    return writableLength === 0 ? 0 : writableLength + this.#spareBytes;
  }

  get isFull(): boolean {
    return this.at + this.#socket.writableLength >= fullBacklogBytes;
  }

  /** Makes room for `length` bytes, at most `slabBytes`. Returns where they begin. */
  reserve(length: number): number {
    if (this.at + length > this.bytes.length) {
      this.flush();
      this.bytes = freeSlabs.pop() ?? Buffer.allocUnsafeSlow(slabBytes);
    }
    return this.at;
  }

  append(bytes: Uint8Array): void {
    const at = this.reserve(bytes.length);
    this.bytes.set(bytes, at);
    this.at = at + bytes.length;
  }

  /** Hands everything to the kernel. */
  flush(): void {
    if (this.at === 0) return;
    const slab = this.bytes;
    const length = this.at;
    this.bytes = noBytes;
    this.at = 0;
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) {
      release(slab);
      return;
    }
    // What has to wait is copied: in a slab, a few bytes would keep 64 KiB. Encryption never is done at once.
    if (this.#isEncrypted || socket.writableLength > 0) {
      const bytes = Buffer.allocUnsafeSlow(length);
      slab.copy(bytes, 0, 0, length);
      socket.write(bytes);
      release(slab);
      return;
    }
    socket.write(slab.subarray(0, length));
    // If the kernel took all of it at once, which is usual, the slab is free. Otherwise it belongs to the socket.
    if (socket.writableLength === 0) release(slab);
    else this.#spareBytes = slabBytes - length;
  }

  /** Forgets what has not been handed over. */
  discard(): void {
    if (this.bytes !== noBytes) release(this.bytes);
    this.bytes = noBytes;
    this.at = 0;
  }
}

function release(slab: Buffer): void {
  if (slab.length === slabBytes && freeSlabs.length < maxFreeSlabs) freeSlabs.push(slab);
}
