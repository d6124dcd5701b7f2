import { randomInt } from "node:crypto";
import { createServer } from "node:net";

export const loopback = "127.0.0.1";

/** Cluster nodes talk to one another on a second port, this much higher. */
const busOffset = 10_000;
// Both lie below the ports that Linux gives to outgoing connections, so that nothing takes them while a server restarts.
const firstPort = 10_240;
const portCount = 12_000;
const tries = 200;

const handedOut = new Set<number>();

/**
 * A port that is free, and whose bus port is, and that this process was not handed before. Another process may be faster
 * in using it, so a server that does not get it asks again.
 */
export async function findFreePort(): Promise<number> {
  for (let attempt = 0; attempt < tries; attempt += 1) {
    const port = firstPort + randomInt(portCount);
    if (handedOut.has(port)) continue;
    handedOut.add(port);
    if ((await isFree(port)) && (await isFree(port + busOffset))) return port;
  }
  throw new Error(
    `No free port was found on ${loopback} in ${tries} tries between ${firstPort} and ${firstPort + portCount}.`,
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, loopback, () => probe.close(() => resolve(true)));
  });
}
