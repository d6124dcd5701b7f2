import type { TestServer } from "./test-server.ts";

/** Starts several at once. If one does not start, the others are closed again, and its error is thrown. */
export async function startAll(count: number, start: () => Promise<TestServer>): Promise<readonly TestServer[]> {
  const outcomes = await Promise.allSettled(Array.from({ length: count }, start));
  const servers = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  const failed = outcomes.find((outcome) => outcome.status === "rejected");
  if (failed === undefined) return servers;
  await closeAll(servers);
  throw failed.reason;
}

export async function closeAll(servers: readonly TestServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.close()));
}
