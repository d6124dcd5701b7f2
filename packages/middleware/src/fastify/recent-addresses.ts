import type { FastifyRequest } from "fastify";

const memoryMs = 1000;
const mostAddresses = 4096;
const longestHeader = 256;

/**
 * The addresses that Fastify found for requests of the last second. It reads every address of `X-Forwarded-For` anew and
 * compares it with each proxy it trusts, which costs more than all the rest of a limit; and nothing goes in but the peer
 * and that header. What an app's own `trustProxy` function says may be a second old.
 */
export class RecentAddresses {
  readonly #known = new Map<string, string>();
  #sinceMs = 0;

  find(request: FastifyRequest): string {
    const forwarded = request.headers["x-forwarded-for"];
    const peer = request.socket.remoteAddress;
    // Without the header there is nothing to find out.
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
