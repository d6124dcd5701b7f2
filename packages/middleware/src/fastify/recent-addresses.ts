import type { FastifyRequest } from "fastify";

const memoryMs = 1000;
const mostAddresses = 4096;
const longestHeader = 256;

/**
 * The addresses that Fastify found for requests of the last second. For every request Fastify parses every address of
 * `X-Forwarded-For` and compares it with each trusted proxy, which costs more than the rest of a check. The result depends
 * on the peer and that header alone. The answer of an app's own `trustProxy` function may be a second old.
 */
export class RecentAddresses {
  readonly #known = new Map<string, string>();
  #sinceMs = 0;

  find(request: FastifyRequest): string {
    const forwarded = request.headers["x-forwarded-for"];
    const peer = request.socket.remoteAddress;
    // Without the header, Fastify has nothing to compute.
    if (typeof forwarded !== "string" || peer === undefined || forwarded.length > longestHeader) return request.ip;
    const nowMs = performance.now();
    if (nowMs - this.#sinceMs >= memoryMs || this.#known.size >= mostAddresses) {
      this.#known.clear();
      this.#sinceMs = nowMs;
    }
    const key = `${peer} ${forwarded}`;
    let address = this.#known.get(key);
    if (address === undefined) {
      address = request.ip;
      this.#known.set(key, address);
    }
    return address;
  }
}
